"""CN6: an archive, then Kafka from the archive's offsets, killed around the handover."""
# pyright: basic

import json
from collections import Counter

import psycopg
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import ALL, share
from tests.acceptance.run_child import killed_at

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

PARTITIONS, ARCHIVED, ALL_OF_TOPIC, OLD = 3, 40, 90, 130
"""Partitions; records of each that the archive has, and that the topic has; rows before both."""
KILLS = [
    ("batch_logged", 2),
    ("before_commit_log", 3),
    ("committed", 3),
    ("batch_logged", 4),
    ("before_commit", 5),
    ("committed", 5),
    ("batch_logged", 6),
    ("before_commit_log", 7),
]
"""Around the handover: the phases take five batches. `KAFLOW_KILLS=all` tries them beside those of
`OF_FILES`, of which each run of the tests has one."""
OF_FILES = [
    ("batch_logged", 2),
    ("before_commit_log", 2),
    ("commit_logged", 2),
    ("batch_logged", 3),
    ("rows_produced", 3),
    ("before_commit", 3),
    ("committed", 3),
    ("before_commit_log", 3),
    ("commit_logged", 3),
    ("batch_logged", 4),
]
"""The same for a file of Streamling, whose one table takes two batches."""
FILE = """\
sources:
  orders:
    type: hybrid
    primary_key: id
    schema: {{id: BIGINT, u: VARCHAR}}
    bounded_sources:
      - {{source_type: clickhouse, table_name: {name}}}
    unbounded_source: {{source_type: kafka, topic: {name}.topic, data_format: json}}
    offset_table: {{partition_column: part, offset_column: off}}
sinks:
  rows: {{type: postgres, from: orders, schema: {name}, table: orders}}
  events: {{type: kafka, from: orders, topic: {name}.out, data_format: json, topic_partitions: 2}}
"""


def row(partition, offset):
    return {"id": partition * 1000 + offset, "u": f"u{offset % 7}"}


@pytest.fixture
def places(broker, postgres, clickhouse, tmp_path, unique):
    """Old rows in files, an archive in ClickHouse, and a topic whose first records it has."""
    folder = tmp_path / "old"
    folder.mkdir()
    rows = [json.dumps({"id": -n, "u": "old"}) for n in range(1, OLD + 1)]
    (folder / "1.json").write_text("\n".join(rows))
    create_topic(broker.settings, f"{unique}.topic", PARTITIONS)
    produced(broker, unique, range(ALL_OF_TOPIC))
    clickhouse.ask(
        f"CREATE TABLE {unique} (id Int64, u String, part Int32, off Int64) "
        "ENGINE = MergeTree ORDER BY (off, part)"
    )
    archive(clickhouse, unique, range(ARCHIVED))
    return unique


def produced(broker, name, offsets):
    producer = open_producer(broker.settings).api
    for offset in offsets:
        for partition in range(PARTITIONS):
            value = json.dumps(row(partition, offset))
            producer.produce(f"{name}.topic", value, partition=partition)
    assert producer.flush(30) == 0


def archive(clickhouse, name, offsets):
    rows = [(row(p, offset), p, offset) for offset in offsets for p in range(PARTITIONS)]
    values = ", ".join(f"({r['id']}, '{r['u']}', {p}, {offset})" for r, p, offset in rows)
    clickhouse.ask(f"INSERT INTO {name} VALUES {values}")


def spec_of(name, folder, **about):
    return PipelineSpec.model_validate(
        {
            "name": name,
            "query": "SELECT id, u FROM clicks",
            "output": {"type": "postgres", "table": f"{name}_rows", "create": True},
            "sources": {
                "clicks": {
                    "type": "hybrid",
                    "columns": {"id": "BIGINT", "u": "VARCHAR"},
                    "phases": [
                        {"type": "files", "path": str(folder), "format": "json", "settle": 0},
                        {"type": "clickhouse", "table_name": name, "page_size": 100},
                    ],
                    "topic": f"{name}.topic",
                    "handover": {"columns": {"partition": "part", "offset": "off"}},
                    **about,
                }
            },
        }
    )


@pytest.fixture
def config(broker, tmp_path, postgres, clickhouse):
    return Config.model_validate(
        {
            "kafka": {"brokers": list(broker.settings.brokers)},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": 60,
            "postgres": {"connections": {"default": {"url": postgres.url}}},
            "clickhouse": {"connections": {"default": clickhouse.connection}},
        }
    )


def run(spec, config, spark, **how):
    from kaflow_engine.runtime.application import run_pipelines

    (planned,) = prepare([spec], config)
    return run_pipelines([planned.plan], config, spark=spark, **how).pipelines[spec.name]


def rows_of(postgres, name):
    with psycopg.connect(postgres.url) as connection:
        asked = f"SELECT id, u FROM {name}_rows"
        return Counter(connection.execute(asked).fetchall())


def expected(until):
    old = Counter((-n, "old") for n in range(1, OLD + 1))
    new = (row(p, offset) for offset in range(until) for p in range(PARTITIONS))
    return old + Counter((each["id"], each["u"]) for each in new)


@pytest.mark.parametrize("place", [None, *(KILLS if ALL else ())], ids=str)
def test_no_gap_and_no_repeat(broker, spark, postgres, clickhouse, config, tmp_path, places, place):
    spec = spec_of(places, tmp_path / "old")
    if place is not None:
        killed_at(*place, spec, config)
    archive(clickhouse, places, range(ARCHIVED, ALL_OF_TOPIC))  # the topic has them, too
    assert run(spec, config, spark, until_caught_up=True).ending == "caught up"
    assert rows_of(postgres, places) == expected(ALL_OF_TOPIC)
    produced(broker, places, range(ALL_OF_TOPIC, ALL_OF_TOPIC + 10))
    assert run(spec, config, spark, until_caught_up=True).ending == "caught up"
    assert rows_of(postgres, places) == expected(ALL_OF_TOPIC + 10)


def test_a_job_ends_with_the_last_phase(spark, postgres, config, tmp_path, places):
    spec = spec_of(places, tmp_path / "old", job=True)
    assert run(spec, config, spark).ending == "caught up"
    assert rows_of(postgres, places) == expected(ARCHIVED)


def test_a_handover_that_the_topic_does_not_reach(spark, config, tmp_path, places):
    offsets = {"offsets": {"0": 5, "1": ALL_OF_TOPIC + 1, "2": 0}}
    spec = spec_of(places, tmp_path / "old", handover=offsets)
    said = f"takes over at offset {ALL_OF_TOPIC + 1} of partition 1, which ends at {ALL_OF_TOPIC}"
    with pytest.raises(SourceUnfit, match=said):
        run(spec, config, spark)
    spec = spec_of(places, tmp_path / "old", handover={"offsets": {"0": 5, "2": 0}})
    with pytest.raises(SourceUnfit, match="says no offset of partition 1 of topic"):
        run(spec, config, spark)


@pytest.mark.parametrize("place", share(OF_FILES, 1), ids=str)
def test_a_file_of_streamling_hands_over(
    broker, spark, postgres, clickhouse, config, tmp_path, places, place
):
    """Each row leaves once, and the table has the last one of each key."""
    connection = {"connections": {"clickhouse_source": clickhouse.connection}}
    there = {"connections": {"postgres_sink": {"url": postgres.url}}}
    said = config.model_dump(by_alias=True, exclude_unset=True)
    config = Config.model_validate({**said, "clickhouse": connection, "postgres": there})
    path = tmp_path / f"{places}.yaml"
    path.write_text(FILE.format(name=places))
    killed_at(*place, path, config)
    archive(clickhouse, places, range(ARCHIVED, ALL_OF_TOPIC))  # the topic has them, too
    (spec,) = load_checked([path], config, {}).pipelines
    assert run(spec, config, spark, until_caught_up=True).ending == "caught up"
    ids = [row(p, offset)["id"] for offset in range(ALL_OF_TOPIC) for p in range(PARTITIONS)]
    sent = read_all(broker.settings, f"{places}.out").to_pylist()
    assert Counter(json.loads(each["value"])["id"] for each in sent) == Counter(ids)
    with psycopg.connect(postgres.url) as connection:
        found = connection.execute(f"SELECT id, u FROM {places}.orders").fetchall()
    assert {(number, f"u{number % 1000 % 7}") for number in ids} == {*found}
    assert len(found) == len(ids)
