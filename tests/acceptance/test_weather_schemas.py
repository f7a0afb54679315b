"""Schemas that evolve while records flow, and a registry that is away."""
# pyright: basic

import io
import json
import threading

import fastavro
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import Location, ModelError
from kaflow_engine.formats.schema_changes import SchemaChanged
from kaflow_engine.formats.schema_registry import RegistryAway
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.registry_here import SmallRegistry

FIRST = (("id", "string", {}), ("n", "int", {}))
WIDER = (("id", "string", {}), ("n", "long", {}), ("tier", ["null", "string"], {"default": None}))


@pytest.fixture
def small():
    registry = SmallRegistry()
    yield registry
    registry.stop()


class Pipeline:
    """One pipeline over the Avro topic `<name>.in`, run by the shared session."""

    def __init__(self, spark, broker, registry, name, path):
        self.spark, self.registry, self.name, self.path = spark, registry, name, path
        self.broker = broker
        self.kafka = KafkaSettings.of([broker.bootstrap])
        self.topic = f"{name}.in"
        create_topic(self.kafka, self.topic, 1)

    def send(self, number, rows):
        schema = fastavro.parse_schema(json.loads(self.registry.schemas[number]))
        producer = open_producer(self.kafka).api
        for row in rows:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, row)
            producer.produce(self.topic, b"\0" + number.to_bytes(4) + out.getvalue())
        assert producer.flush(30) == 0

    def run(self, policy="ignore", select="e.id, e.n", deadline="5m", **more):
        from kaflow_engine.plan.evolution.diff import change
        from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

        config = Config.model_validate(
            {
                "kafka": {"brokers": self.broker.bootstrap, "schemaRegistry": self.registry.url},
                "state": {"rocksdb": {"path": str(self.path)}},
                "retry_deadline": deadline,
            }
        )
        data = {
            "name": self.name,
            "query": f'SELECT {select} FROM "{self.topic}" e',
            "output": {"topic": f"{self.name}.out"},
            "topics": {self.topic: {"format": "avro", "on_schema_change": policy}},
        }
        (planned,) = prepare([pipeline_from_mapping(data, Location("p.yaml", 1))], config)
        more = more or {"until_caught_up": True}
        return run_pipelines([planned.plan], config, spark=self.spark, change=change, **more)

    def rows(self):
        found = read_all(self.kafka, f"{self.name}.out")["value"].to_pylist()
        return sorted((json.loads(value) for value in found), key=lambda row: row["n"])


@pytest.fixture
def pipeline(spark, broker, small, unique, tmp_path):
    return Pipeline(spark, broker, small, unique, tmp_path)


@pytest.mark.spark
@pytest.mark.kafka
def test_a_schema_that_grows(pipeline, small):
    """One topic through all three policies, each at a restart."""
    subject = f"{pipeline.topic}-value"
    small.add(1, FIRST, subject)
    pipeline.send(1, [{"id": "a", "n": 1}])
    pipeline.run("fail")
    small.add(2, WIDER, subject)
    pipeline.send(1, [{"id": "a", "n": 2}])
    pipeline.send(2, [{"id": "b", "n": 3, "tier": "gold"}])
    for _ in range(2):  # a restart does not accept what stopped the run before
        with pytest.raises(SchemaChanged) as caught:
            pipeline.run("fail")
        assert str(caught.value) == (
            f"the schema of '{subject}' has changed from id 1 to id 2: field 'n' is BIGINT, was "
            "INTEGER, field 'tier' VARCHAR was added\n"
            f"  hint: set topics.{pipeline.topic}.on_schema_change: ignore to read on without new "
            "fields, or add_nullable to take them in at the next start"
        )
        assert [row["n"] for row in pipeline.rows()] == [1]
    pipeline.run("ignore")
    assert [row["n"] for row in pipeline.rows()] == [1, 2, 3]


@pytest.mark.spark
@pytest.mark.kafka
def test_new_fields_are_ignored_or_taken_in_at_a_restart(pipeline, small):
    subject = f"{pipeline.topic}-value"
    small.add(1, FIRST, subject)
    pipeline.send(1, [{"id": "a", "n": 1}])
    pipeline.run("ignore", select="*")
    small.add(2, WIDER, subject)
    pipeline.send(2, [{"id": "b", "n": 2, "tier": "gold"}])
    pipeline.run("ignore", select="*")
    pipeline.send(1, [{"id": "a", "n": 3}])
    pipeline.send(2, [{"id": "b", "n": 4, "tier": "gold"}])
    pipeline.run("add_nullable", select="*")
    assert pipeline.rows() == [
        {"id": "a", "n": 1},
        {"id": "b", "n": 2},
        {"id": "a", "n": 3, "tier": None},
        {"id": "b", "n": 4, "tier": "gold"},
    ]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_registry_that_is_away_when_a_new_schema_comes(pipeline, small):
    small.add(1, FIRST, f"{pipeline.topic}-value")
    pipeline.send(1, [{"id": "a", "n": 1}])
    pipeline.run()
    small.add(2, WIDER)
    pipeline.send(2, [{"id": "b", "n": 2, "tier": None}])
    small.stop()
    with pytest.raises(RegistryAway, match=r"the schema registry at .* does not answer") as caught:
        pipeline.run(deadline="2s")
    assert caught.value.exit_code == 11
    assert [row["n"] for row in pipeline.rows()] == [1]
    stop = threading.Event()

    def progressed(progress):
        if progress.state == "degraded":
            small.start()
        if progress.counters.get("emitted", 0) == 2:
            stop.set()

    pipeline.run(on_progress=progressed, stop=stop)
    assert [row["n"] for row in pipeline.rows()] == [1, 2]


@pytest.mark.kafka
def test_a_registry_that_is_away_at_the_start(broker, small, unique, tmp_path):
    small.stop()
    create_topic(KafkaSettings.of([broker.bootstrap]), f"{unique}.in", 1)
    config = Config.model_validate(
        {
            "kafka": {"brokers": broker.bootstrap, "schemaRegistry": small.url},
            "state": {"rocksdb": {"path": str(tmp_path)}},
            "retry_deadline": "1s",
        }
    )
    spec = pipeline_from_mapping(
        {
            "name": unique,
            "query": f'SELECT e.id FROM "{unique}.in" e',
            "output": {"topic": f"{unique}.out"},
            "topics": {f"{unique}.in": {"format": "avro"}},
        },
        Location("p.yaml", 1),
    )
    with pytest.raises(RegistryAway, match="does not answer") as caught:
        prepare([spec], config)
    assert caught.value.hint == "check kafka.schemaRegistry and that the registry runs"


def test_json_says_no_schema():
    data = {
        "name": "p",
        "query": "SELECT e.id FROM t e",
        "output": {"topic": "o"},
        "topics": {"t": {"on_schema_change": "fail"}},
    }
    with pytest.raises(ModelError, match="'on_schema_change: fail' of 't' has no effect on JSON"):
        build_plan(
            pipeline_from_mapping(data, Location("p.yaml", 1)),
            Config(),
            {"t": (Column("id", "VARCHAR"),)},
        )
