"""Which ranges a backfill may fill, by what the log of the stream says."""
# pyright: basic

from dataclasses import replace

import pytest

from kaflow_engine.errors import ModelError, StateError
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.output_specs import OutputSpec
from kaflow_engine.model.query_settings import AggregationSpec, EmissionSpec
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.batch.settled import longest_wait
from kaflow_engine.runtime.drive.backfill_guard import (
    Taken,
    check_backfill,
    last_settled,
    state_of_stream,
    taken,
)
from kaflow_engine.runtime.drive.bounded import reach, refuse_removed
from kaflow_engine.runtime.drive.windows import refuse_groups
from tests.engine.runtime.state_here import state_plan
from tests.engine.runtime.stream_here import write_stream

HOUR = 3_600_000
TOTALS = OutputSpec(topic="o")
START = 1_767_225_600_000
"""2026-01-01."""
TTL = 20 * 60_000
SMART = {"emission": {"type": "smart", "require": ["tier"]}}

WAITS = [
    # nothing rests
    ([], {}, 0),
    (["users"], {}, 0),
    # rows rest until a dimension is known, for an event side, or to be decided
    (["users"], SMART, TTL),
    (["payments"], {}, TTL),
    ([], {"emission": {"type": "final"}}, 0),
    (["users"], {"emission": {"type": "final"}}, TTL),
    (["users"], {"on_dimension_update": "reemit"}, TTL),
]


@pytest.mark.parametrize(("joins", "more", "wait"), WAITS)
def test_how_long_a_row_waits(joins, more, wait):
    plan = state_plan(*joins, **more)
    assert [longest_wait(plan, chain) for chain in chains(plan)] == [wait]


SETTLED = [
    # ran with, watermark after, next due; settled, less the TTL
    (None, None, None, None),
    (None, 5, None, 5),
    (3, 5, None, 5),
    (3, 5, 9, 5),
    (3, 5, 4, 4),  # what falls due behind 4 may be written by the next batch
    (3, 5, 2, 3),  # and what fell due before 3 was
]


@pytest.mark.parametrize(("ran_with", "after", "due", "settled"), SETTLED)
@pytest.mark.parametrize(("joins", "wait"), [(["payments"], TTL), ([], 0)])
def test_what_has_settled(tmp_path, joins, wait, ran_with, after, due, settled):
    write_stream(tmp_path, state_plan(*joins), ran_with, after, due)
    wanted = None if settled is None else settled - wait
    assert taken(tmp_path) == Taken(offsets={"events": {0: 7}}, settled=wanted)


def test_what_no_batch_has_taken(tmp_path):
    assert taken(tmp_path) is None
    write_stream(tmp_path, state_plan(), batches=False)
    assert taken(tmp_path) == Taken(offsets={"events": {0: 2}}, settled=None)


SPEC = PipelineSpec.model_validate(
    {
        "name": "shop",
        "query": "SELECT e.id, p.n FROM events e JOIN payments p ON e.id = p.id",
        "output": {"table": "paid", "partition": "hour"},
        "topics": {
            "events": {"columns": {"id": "VARCHAR"}},
            "payments": {"columns": {"id": "VARCHAR", "n": "BIGINT"}},
        },
    }
)
"""Rows wait for an hour."""
PLAN = build_plan(
    SPEC,
    Config(),
    {
        "events": (Column("id", "VARCHAR"),),
        "payments": (Column("id", "VARCHAR"), Column("n", "BIGINT")),
    },
).plan
TOLD = [
    (0, "2025-12-31-22"),
    (HOUR, "2025-12-31-23"),
    (2 * HOUR - 1, "2025-12-31-23"),
    (2 * HOUR, "2026-01-01-00"),
    (3 * HOUR, "2026-01-01-01"),
    (99 * HOUR, "2026-01-01-02"),  # no later than what is over
]


def test_files_are_not_backfilled(config):
    said = {"name": "p", "query": "SELECT id FROM t", "topics": {"t": {"columns": {"id": "INT"}}}}
    spec = PipelineSpec.model_validate({**said, "output": {"type": "files", "folder": "kept"}})
    for force in (False, True):
        with pytest.raises(ModelError) as caught:
            check_backfill(spec, config, Backfill(start=START, end=START + HOUR, force=force))
        assert str(caught.value) == (
            "<inline>: a backfill cannot write to 'files:kept': nothing tells which of its rows "
            "the backfill would replace\n  hint: write a pipeline with another id and another "
            "target, and run it from the first record"
        )


@pytest.mark.parametrize(("mark", "newest"), TOLD)
def test_the_newest_partition_that_has_settled(config, mark, newest):
    write_stream(state_of_stream(config, "shop"), PLAN, START + mark, START + mark)
    assert last_settled(SPEC, config, START + 3 * HOUR + 5 * 60_000) == newest
    end = START + mark // HOUR * HOUR
    check_backfill(SPEC, config, Backfill(start=START - 9 * HOUR, end=end - HOUR))
    with pytest.raises(StateError, match="may still write rows of"):
        check_backfill(SPEC, config, Backfill(start=START - 9 * HOUR, end=end))


REFUSED = [
    (
        None,
        "there is no state of the stream of pipeline 'shop' in {folder}, so nothing says what it "
        "may still write\n"
        "  hint: backfill where the state of the stream is; if no stream writes, force it",
    ),
    (
        False,
        "the stream of pipeline 'shop' may still write rows of "
        "2026-01-01T00:00:00Z/2026-01-01T01:00:00Z: it has read no event yet\n"
        "  hint: choose an earlier end, or force it and accept that both write",
    ),
    (
        True,
        "the stream of pipeline 'shop' may still write rows of "
        "2026-01-01T00:00:00Z/2026-01-01T01:00:00Z: its watermark, less the longest time that a "
        "row waits, is 2026-01-01T00:30:00Z\n"
        "  hint: choose an earlier end, or force it and accept that both write",
    ),
]


@pytest.mark.parametrize(("batches", "said"), REFUSED)
def test_what_is_refused(config, batches, said):
    folder = state_of_stream(config, "shop")
    if batches is not None:
        write_stream(folder, PLAN, START + 3 * HOUR // 2, START + 3 * HOUR // 2, batches=batches)
    wanted = Backfill(start=START, end=START + HOUR)
    with pytest.raises(StateError) as caught:
        check_backfill(SPEC, config, wanted)
    assert str(caught.value) == f"<inline>: {said.format(folder=folder)}"
    check_backfill(SPEC, config, replace(wanted, force=True))


@pytest.fixture
def config(tmp_path):
    return Config.model_validate({"state": {"rocksdb": {"path": str(tmp_path)}}})


WINDOWS = [
    # GROUP BY, partition of the table; how far the watermark is behind a partition when it is done
    ("k", "day", None),
    ("k, session(INTERVAL 1 MINUTE)", "day", None),
    ("k, tumble(INTERVAL 1 HOUR)", "hour", 0),
    ("k, tumble(INTERVAL 1 DAY)", "day", 0),
    ("k, tumble(INTERVAL 1 DAY)", "hour", 24 * HOUR),
    ("k, hop(INTERVAL 30 MINUTE, INTERVAL 10 MINUTE)", "hour", HOUR // 3),
    ("k, hop(INTERVAL 30 MINUTE, INTERVAL 7500 MILLISECOND)", "hour", HOUR // 2 - 7500),
    ("k, tumble(INTERVAL 25 MINUTE)", "hour", 25 * 60_000),
    ("k, date_trunc('month', at)", "day", 31 * 24 * HOUR),
]


@pytest.mark.parametrize(("groups", "partition", "wait"), WINDOWS)
def test_windows_are_over_behind_their_partition_and_others_refused(groups, partition, wait):
    plan = grouped(f"SELECT k, count(*) AS n FROM t GROUP BY {groups}", partition, wait is None)
    if wait is None:
        with pytest.raises(StateError, match=r"count only the records of its range|has sessions"):
            refuse_groups(plan)
        return
    refuse_groups(plan)
    assert [longest_wait(plan, chain) for chain in chains(plan)] == [wait]


def test_windows_that_leave_again_with_late_records_are_refused():
    spec = PipelineSpec(
        name="p",
        query="SELECT k, count(*) AS n FROM t GROUP BY k, tumble(INTERVAL 1 HOUR)",
        output=TOTALS,
        emission=EmissionSpec(type="final", late_updates=True),
        aggregation=AggregationSpec(grace=HOUR),
        topics={"t": TopicSpec(event_time="at")},
    )
    columns = (Column("k", "VARCHAR"), Column("at", "TIMESTAMP"))
    with pytest.raises(StateError, match="late_updates"):
        refuse_groups(build_plan(spec, Config(), {"t": columns}).plan)


def grouped(query, partition="hour", topic=False):
    spec = PipelineSpec(
        name="p",
        query=query,
        output=TOTALS if topic else OutputSpec(table="o", partition=partition),
        topics={"t": TopicSpec(event_time="at")},
    )
    columns = (Column("k", "VARCHAR"), Column("at", "TIMESTAMP"))
    return build_plan(spec, Config(), {"t": columns}).plan


def test_a_backfill_reads_whole_windows():
    ten = "hop(INTERVAL 10 MINUTE, INTERVAL 5 MINUTE)"
    wanted = Backfill(start=START, end=START + HOUR, slack=0)
    inner = f"SELECT k, window_start AS w, count(*) AS n FROM t GROUP BY k, {ten}"
    outer = f"SELECT sum(n) AS n FROM ({inner}) GROUP BY tumble(INTERVAL 20 MINUTE)"
    one, two = grouped(inner), grouped(outer)
    assert reach(one, wanted) == {"t": (START, START + HOUR + 600_000)}
    assert reach(two, wanted) == {"t": (START - 600_000, START + HOUR + 1_800_000)}


def test_a_backfill_refuses_windows_of_removed_records():
    plan = grouped("SELECT k, count(*) AS n FROM t GROUP BY k, tumble(INTERVAL 1 HOUR)")
    wanted = Backfill(start=START, end=START + HOUR)
    refuse_removed(plan, wanted, {"t": {0: 0, 1: 5}}, {"t": {0: 0, 1: 4}})
    with pytest.raises(StateError, match="partition 1 of topic 't' begins behind the start of"):
        refuse_removed(plan, wanted, {"t": {0: 0, 1: 4}}, {"t": {0: 0, 1: 4}})
    forced = replace(wanted, force=True)
    refuse_removed(plan, forced, {"t": {0: 0, 1: 4}}, {"t": {0: 0, 1: 4}})
    refuse_removed(state_plan(), wanted, {}, {})
