"""The six pipelines printed in the first seed, verbatim, from Kafka to Kafka."""

import json
from pathlib import Path

import pytest

from kaflow_engine.cli.live_view.board import account
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.flow.graph import columns_of, topic_sinks
from kaflow_engine.formats.avro.schema import avro_schema
from kaflow_engine.formats.avro.types import parse_avro
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.testing.cases.cases import CaseResult, run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.report import report_lines
from tests.acceptance.kafka_cases import AROUND, cases_of, config_for, run_cases

JSON, AVRO = cases_of("seeds_json.yaml"), cases_of("seeds_avro.yaml")
CASES = [pytest.param(case, id=case.name) for case in (*JSON, *AVRO)]
NAMES = [case.name for case in (*JSON, *AVRO)]
PLACE = ("partition", "offset")
T = 1_767_232_800_000
"""2026-01-01T02:00:00Z"""

MORE = [
    ("user_events", "u1", {"event_type": "e2", "timestamp": T}, T),
    ("user_profiles", "u3", {"subscription_tier": "late", "country": "PT"}, T + 1),
    ("user_events", "u1", {"event_type": "e3", "timestamp": T + 2}, T + 2),
]

NEW = [("e2", T), ("e3", T + 2)]
WAITED = 1_767_229_203_000

PIPELINES = Path(__file__).parents[1] / "fixtures" / "pipelines"


@pytest.fixture(scope="module")
def json_config(broker, tmp_path_factory):
    return config_for(broker, tmp_path_factory.mktemp("json"))


@pytest.fixture(scope="module")
def json_run(spark, json_config):
    return run_cases(spark, JSON, json_config)


@pytest.fixture(scope="module")
def restarted(spark, json_run, json_config):
    """What user_enrichment adds in a second run, after more events and a late profile."""
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    first = json_run["user_enrichment"]
    kafka = KafkaSettings.of(json_config.kafka.brokers)
    producer = open_producer(kafka).api
    for topic, user, value, at in MORE:
        data = json.dumps({"user_id": user, **value}).encode()
        producer.produce(topic, data, user.encode(), partition=0, timestamp=at)
    assert producer.flush(30) == 0
    (planned,) = prepare([first.planned.spec], json_config)
    summary = run_pipelines([planned.plan], json_config, until_caught_up=True, spark=spark)
    before = set(zip(*(first.rows[name].to_pylist() for name in PLACE), strict=True))
    (sink,) = topic_sinks(planned.plan)
    rows = read_all(kafka, sink.topic).to_pylist()
    added = [row for row in rows if tuple(row[name] for name in PLACE) not in before]
    return added, summary.pipelines[planned.plan.name]


@pytest.fixture(scope="module")
def avro_run(spark, broker, registry, restarted, tmp_path_factory):
    # after the others, because two pipelines read the same topic in different formats
    path = tmp_path_factory.mktemp("avro")
    return run_cases(spark, AVRO, config_for(broker, path, registry, use_avro=True))


@pytest.fixture
def ran(request, json_run, avro_run):
    return {**json_run, **avro_run}[request.param]


def enriched(user, kind, at, tier, country):
    row = {"user_id": user, "event_type": kind, "timestamp": at}
    return {**row, "subscription_tier": tier, "country": country}


@pytest.mark.parametrize("case", CASES)
def test_the_local_executor_gives_the_same_rows(case):
    result = run_case(case, LocalExecutor(), around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


def test_all_six_are_there():
    assert sorted(NAMES) == sorted(path.stem for path in PIPELINES.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_explains_itself_without_a_broker(name):
    spec = load_pipeline(PIPELINES / f"{name}.yaml", {})
    text = "\n".join(draw(explain(spec, Config())))
    assert all(write.output.target in text for write in spec.writes)
    assert "not known yet" in text


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
class TestOnKafka:
    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_rows_dead_letters_and_counters_are_right(self, ran):
        result = CaseResult(case=ran.case, differences=tuple(ran.differences))
        assert result.passed, "\n".join(report_lines(result))

    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_every_driving_record_is_in_one_class(self, ran):
        read, classes, missing = account(ran.summary.counters)
        assert missing == 0, classes
        driving = next(topic.name for topic in ran.planned.plan.sources if topic.driving)
        assert read == sum(record.topic == driving for record in ran.case.given)

    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_rows_carry_the_time_of_their_driving_record(self, ran):
        driving = next(topic.name for topic in ran.planned.plan.sources if topic.driving)
        (sink,) = topic_sinks(ran.planned.plan)
        assert sink.key is not None
        times = {record.timestamp for record in ran.case.given if record.topic == driving}
        found = ran.rows["timestamp"].to_pylist()
        assert len(found) == len(ran.outcome.rows)
        assert set(found) <= times
        for time, row in zip(found, ran.outcome.rows, strict=True):
            assert row.value.get("timestamp", time) == time

    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_explains_itself_with_the_columns_found(self, ran):
        text = "\n".join(draw(explain(ran.planned.spec, Config(), ran.planned.schemas)))
        assert "not known yet" not in text
        for topic in ran.planned.plan.sources:
            assert topic.name in text
            for column in topic.columns:
                assert column.name in text

    def test_ks16_a_restart_joins_against_what_was_there_before(self, restarted):
        added, summary = restarted
        found = [(row["key"], row["timestamp"], json.loads(row["value"])) for row in added]
        assert sorted(found, key=lambda row: row[0]) == [
            *((b"u1", at, enriched("u1", kind, at, "premium", "US")) for kind, at in NEW),
            # waited since the first run
            (b"u3", WAITED, enriched("u3", "login", WAITED, "late", "PT")),
        ]
        assert summary.records == len(MORE)
        assert (summary.counters["read"], summary.counters["waiting"]) == (10, 1)
        assert account(summary.counters)[2] == 0

    def test_avro_output_is_registered(self, avro_run, registry):
        for name, ran in avro_run.items():
            (sink,) = topic_sinks(ran.planned.plan)
            latest = Registry(url=registry.url).latest(f"{sink.topic}-value")
            if sink.format == "json":
                assert latest is None, name
                continue
            assert latest is not None, name
            columns = columns_of(ran.planned.plan, sink)
            assert parse_avro(latest.schema) == parse_avro(avro_schema(columns)), name
            assert {value[:5] for value in ran.rows["value"].to_pylist()} == {
                b"\0" + latest.id.to_bytes(4, "big")
            }

    def test_a_dead_letter_keeps_bytes_and_headers(self, json_run):
        (letter,) = json_run["user_enrichment"].letters.to_pylist()
        headers = {header["key"]: header["value"] for header in letter["headers"]}
        assert (letter["key"], letter["value"], headers["trace"]) == (b"u1", b"{broken", b"abc")
        assert headers["kaflow.pipeline"] == b"user_enrichment"
