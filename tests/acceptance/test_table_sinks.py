"""Rows and changes in ClickHouse and Iceberg tables, on Spark and Kafka, wherever a run is killed.

`test_crash_points.py` kills runs of both at every step, without Spark.
"""
# pyright: basic

from collections import Counter

import pytest

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import ModelError
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.drive.backfill_guard import check_backfill
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import CLICKS, DAYS, SECOND, config_for, load
from tests.engine.connectors.iceberg_here import catalog_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

CLICKED = range(DAYS * 144)
REFUSED = {100, 101, 250}


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "housed")
    return "housed"


@pytest.fixture
def catalog(tmp_path):
    return {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path / "lake")}


@pytest.fixture
def config(broker, clickhouse, catalog, tmp_path):
    return config_for(
        broker,
        tmp_path / "state",
        kafka={"brokers": broker.bootstrap},
        max_records=150,
        clickhouse={"connections": {"default": clickhouse.connection}},
        iceberg={"connections": {"default": catalog}},
    )


def spec_of(name, topics):
    """Plan the rows, and the counts of users that come and go, into tables of both kinds."""
    clicks = f'"{topics}.clicks"'
    rows = f"SELECT id, u FROM {clicks}"
    counts = (
        f"SELECT u, count(*) AS n, max(id) AS last FROM {clicks} GROUP BY u HAVING max(id) < 429"
    )
    house = {"type": "clickhouse", "create": True}
    lake = {"type": "iceberg", "create": True, "interval": "100ms"}
    return PipelineSpec.model_validate(
        {
            "name": name,
            "outputs": [
                {"query": rows, **house, "table": f"{name}_rows", "create": False},
                {"query": counts, **house, "table": f"{name}_counts", "key": "u"},
                {"query": rows, **lake, "table": f"{name}.rows"},
                {"query": counts, **lake, "table": f"{name}.counts", "key": "u"},
            ],
            "topics": {f"{topics}.clicks": CLICKS},
        }
    )


def in_the_lake(catalog, table):
    with catalog_of(IcebergConnection(**catalog), "default") as opened:
        return [
            tuple(row.values()) for row in opened.load_table(table).scan().to_arrow().to_pylist()
        ]


KILLS = [("piece_committed", 2), ("before_table", 3), ("table_taken", 2), ("commit_logged", 2)]
PLACES = peace_or(KILLS, 1)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_row_is_once_and_each_count_the_last(
    broker, spark, clickhouse, catalog, topics, config, unique, place
):
    from kaflow_engine.runtime.application import run_pipelines

    spec = spec_of(unique, topics)
    clickhouse.ask(
        f"CREATE TABLE {unique}_rows (id Int64, u String, "
        "CONSTRAINT kept CHECK id NOT IN (100, 101, 250)) ENGINE = MergeTree ORDER BY id "
        "SETTINGS non_replicated_deduplication_window = 100"
    )
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    rows = Counter((n, f"u{n % 7}") for n in CLICKED)
    kept = Counter({row: 1 for row in rows if row[0] not in REFUSED})
    assert Counter(clickhouse.ask(f"SELECT id, u FROM {unique}_rows")) == kept
    assert Counter(in_the_lake(catalog, f"{unique}.rows")) == rows
    users = {f"u{m}": [n for n in CLICKED if n % 7 == m] for m in range(7)}
    counts = {(u, len(ids), max(ids)) for u, ids in users.items() if max(ids) < 429}
    assert 0 < len(counts) < len(users)  # some were deleted
    assert Counter(clickhouse.ask(f"SELECT u, n, last FROM {unique}_counts FINAL")) == Counter(
        counts
    )
    assert Counter(in_the_lake(catalog, f"{unique}.counts")) == Counter(counts)
    # rows that the server refused are dead letters once, beside the two broken records
    letters = read_all(broker.settings, planned.plan.dead_letter_topic)["headers"].to_pylist()
    phases = Counter(
        {h["key"]: h["value"] for h in headers}["kaflow.phase"].decode() for headers in letters
    )
    assert phases == {"decode": 2, "sink": len(REFUSED)}


def test_a_backfill_is_refused(spark, topics, config, unique):
    (planned,) = prepare([spec_of(unique, topics)], config)
    with pytest.raises(ModelError, match="a backfill cannot write to 'clickhouse:default"):
        check_backfill(planned.spec, config, SECOND)
