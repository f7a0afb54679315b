"""Tables of databases as sources, with no broker anywhere: joined, grouped, killed, changed."""
# pyright: basic

from collections import Counter

import psycopg
import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at

pytestmark = [pytest.mark.spark, pytest.mark.services]

ORDERS, USERS, MINUTE = 350, 230, 50
"""Rows of both tables, and orders of a minute."""
KILLS = [
    ("batch_logged", 1),
    ("batch_logged", 4),
    ("mapped", 2),
    ("before_commit", 6),
    ("before_commit_log", 7),
    ("commit_logged", 2),
]


@pytest.fixture
def tables(postgres, clickhouse, unique):
    """Orders in Postgres, users in ClickHouse."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(
            f"""CREATE TABLE {unique}_orders AS SELECT n AS id, 'u' || n % {USERS} AS u,
            timestamptz '2026-01-01 00:00:00Z' + n * interval '{60 / MINUTE} s' AS at
            FROM generate_series(0, {ORDERS - 1}) n"""
        )
        connection.execute(f"ALTER TABLE {unique}_orders ADD PRIMARY KEY (id)")
    clickhouse.ask(
        f"CREATE TABLE {unique}_users (u String, name String, ver UInt64) "
        "ENGINE = ReplacingMergeTree(ver) ORDER BY u"
    )
    for version, name in ((1, "nobody"), (2, "name of u")):
        clickhouse.ask(
            f"INSERT INTO {unique}_users SELECT concat('u', toString(number)), "
            f"concat('{name}', toString(number)), {version} FROM numbers({USERS})"
        )
    return unique


def spec_of(name):
    """Plan orders with the names of their users, and counts by the minute."""
    written = {"type": "postgres", "create": True}
    return PipelineSpec.model_validate(
        {
            "name": name,
            "outputs": [
                {
                    "query": "SELECT o.id, u.name FROM orders o LEFT JOIN users u ON o.u = u.u",
                    "table": f"{name}_rows",
                    **written,
                },
                {
                    "query": "SELECT window_start AS since, count(*) AS n FROM orders "
                    "GROUP BY tumble(INTERVAL 1 MINUTE)",
                    "table": f"{name}_counts",
                    **written,
                },
            ],
            "sources": {
                "orders": {
                    "type": "postgres",
                    "table_name": f"{name}_orders",
                    "page_size": 100,
                    "event_time": "at",
                },
                "users": {
                    "type": "clickhouse",
                    "table_name": f"{name}_users",
                    "page_size": 100,
                    "table": True,
                    "primary_key": ["u"],
                },
            },
        }
    )


@pytest.fixture
def config(tmp_path, postgres, clickhouse):
    return Config.model_validate(
        {
            "kafka": {"brokers": "127.0.0.1:9", "consumer": {"autoOffsetReset": "latest"}},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": 60,
            "postgres": {"connections": {"default": {"url": postgres.url}}},
            "clickhouse": {"connections": {"default": clickhouse.connection}},
        }
    )


def rows_of(postgres, query):
    with psycopg.connect(postgres.url) as connection:
        return Counter(connection.execute(query).fetchall())


def run(spec, config, spark, **how):
    from kaflow_engine.runtime.application import run_pipelines

    (planned,) = prepare([spec], config)
    return run_pipelines([planned.plan], config, spark=spark, **how).pipelines[spec.name]


@pytest.mark.parametrize("place", peace_or(KILLS, 1), ids=str)
def test_a_job_ends_with_each_row_once(spark, postgres, clickhouse, config, tables, place):
    spec = spec_of(tables)
    if place is not None:
        killed_at(*place, spec, config)
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"UPDATE {tables}_orders SET u = 'changed' WHERE id < 100")
        clickhouse.ask(f"INSERT INTO {tables}_users SELECT u, 'late', 3 FROM {tables}_users")
    summary = run(spec, config, spark)
    assert summary.ending == "caught up"
    rows = rows_of(postgres, f"SELECT id, name FROM {tables}_rows")
    assert rows == Counter((n, f"name of u{n % USERS}") for n in range(ORDERS))
    counts = rows_of(postgres, f"SELECT n FROM {tables}_counts")
    assert counts == {(MINUTE,): ORDERS // MINUTE}  # the last one, too: nothing comes behind it
    again = run(spec, config, spark, until_caught_up=True)
    assert (again.ending, again.records) == ("caught up", 0)


def test_another_condition_needs_a_new_state(spark, config, tables):
    spec = spec_of(tables)
    run(spec, config, spark)
    orders = spec.sources["orders"]
    other = orders.model_copy(update={"where": "id > 3"})
    changed = spec.model_copy(update={"sources": {**spec.sources, "orders": other}})
    with pytest.raises(StateError, match="where id > 3, was postgres table"):
        run(changed, config, spark, change=change)
    sized = orders.model_copy(update={"page_size": 200})
    same = spec.model_copy(update={"sources": {**spec.sources, "orders": sized}})
    assert run(same, config, spark, change=change).ending == "caught up"
