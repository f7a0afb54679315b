"""A table of windows: the stream and a backfill give the same rows, after they were killed, too."""
# pyright: basic

from dataclasses import replace

import pytest
from deltalake import DeltaTable

from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.graph import table_sinks
from kaflow_engine.runtime.drive.backfill_guard import check_backfill
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.run_child import killed_at
from tests.acceptance.test_backfill_beside import FIRST, HOUR, MINUTE, START, world
from tests.acceptance.three_days import DAY, SECOND, config_for, load, spec_of

__all__ = ["world"]

WINDOWS = """
SELECT c.u, window_start AS hour, window_end, count(*) AS clicks, sum(c.id) AS ids
FROM "{p}.clicks" c GROUP BY c.u, tumble(INTERVAL 1 HOUR)
"""
HOP = """
SELECT c.id, count(*) AS n
FROM "{0}.clicks" c GROUP BY c.id, hop(INTERVAL 30 MINUTE, INTERVAL 15 MINUTE)
"""


@pytest.mark.spark
@pytest.mark.kafka
def test_a_backfill_gives_the_rows_of_the_stream(broker, spark, unique, tmp_path):
    from kaflow_engine.runtime.application import run_backfill, run_pipelines

    load(broker, unique)
    settings = {"max_records": 150, "warehouse": str(tmp_path / "warehouse")}
    config = config_for(broker, tmp_path / "state", **settings)
    spec = spec_of("alone", unique, unique, to={"table": "hours"})
    spec = spec.model_copy(update={"query": WINDOWS.format(p=unique)})
    (planned,) = prepare([spec], config)
    killed_at("table_taken", 2, spec, config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    streamed = contents(planned.plan)
    assert len(streamed) > 2 * 24 * 7
    assert len({row["_group"] for row in streamed}) == len(streamed)
    assert all(row["_day"] == f"{row['hour']:%Y-%m-%d}" for row in streamed)
    third = Backfill(start=SECOND.end, end=SECOND.end + DAY)
    with pytest.raises(StateError, match="may still write rows of 2026-01-03T00:00:00Z/2026-01-04"):
        check_backfill(spec, config, third)
    check_backfill(spec, config, SECOND)
    (sink,) = table_sinks(planned.plan)
    files = set(DeltaTable(sink.table.path).file_uris())
    killed_at("before_replace", 0, spec, config, SECOND)
    run_backfill(planned.plan, config, SECOND, spark=spark)
    assert contents(planned.plan) == streamed
    left = files & set(DeltaTable(sink.table.path).file_uris())
    assert {name.split("_day=")[1][:10] for name in files - left} == {"2026-01-02"}


@pytest.mark.kafka
def test_windows_have_all_their_records_and_those_that_came_late(world):
    world.plan(HOP)
    for key, at in (("a", -10), ("a", 5), ("a", 50), ("a", 65), ("a", 80), ("beyond", 140)):
        world.send("clicks", key, at)
    world.stream()
    streamed = counted(world)
    assert streamed == {-30: 1, -15: 2, 0: 1, 30: 1, 45: 2, 60: 2, 75: 1}
    world.fill(FIRST)
    assert counted(world) == streamed
    world.send("clicks", "a", 66, stamp=141)
    world.send("clicks", "beyond", 200)
    world.stream()
    assert counted(world) == streamed
    world.fill(FIRST)
    assert counted(world) == streamed | {45: 3}


@pytest.mark.kafka
def test_windows_of_records_that_are_gone_are_left_as_they_are(world):
    world.plan(HOP)
    for key, at in (("a", 5), ("a", 50), ("beyond", 200)):
        world.send("clicks", key, at)
    world.stream()
    streamed = counted(world)
    world.lose(1)
    with pytest.raises(StateError, match="records of its windows may be gone"):
        world.fill(FIRST)
    assert counted(world) == streamed
    world.fill(replace(FIRST, force=True))
    assert counted(world) == {-15: 1, 30: 1, 45: 1}


def counted(world):
    """Return the records of the key `a` by the minute at which their windows begin."""
    (sink,) = table_sinks(world.planned.plan)
    rows = DeltaTable(sink.table.path).to_pyarrow_table().to_pylist()
    found = {
        round(row["_event_time"].timestamp() * 1000 - START) // MINUTE: row["n"]
        for row in rows
        if row["id"] == "a"
    }
    assert all(row["_hour"] == f"{row['_event_time']:%Y-%m-%d-%H}" for row in rows)
    assert FIRST.end - FIRST.start == HOUR
    return found


def contents(plan):
    """Return all rows of a table, in an order that does not depend on files."""
    (sink,) = table_sinks(plan)
    rows = DeltaTable(sink.table.path).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["_group"])
