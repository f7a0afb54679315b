"""What is kept of batches, for whoever watches."""

import pytest

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.measures import Measure, Series
from kaflow_engine.operators.rows.reports import BatchReport, PartitionReport
from kaflow_engine.operators.watermark import Mark, WatermarkState, holder
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.progress import Watch, lag_of, level_name, operator_name
from kaflow_engine.runtime.batch.runner import BatchDone
from kaflow_engine.runtime.batch.task_metrics import skew, state_sizes
from kaflow_engine.runtime.jobs.executor import Executed
from kaflow_engine.runtime.spark.master import cores
from tests.engine.flow.stored_plans import stored_plan
from tests.engine.runtime.plans_here import lookup_plan

PLAN = lookup_plan("p", "events", "profiles", "out", smart=True)


def test_lag_is_what_is_not_read_yet():
    ends = {"a": {0: 10, 1: 5}, "b": {0: 3}}
    assert lag_of({"a": {0: 4, 1: 9}}, ends) == {"a": 6, "b": 3}


def test_every_change_is_told():
    told = []
    watch = Watch("p", told.append)
    watch.say(state="running")
    watch.say(last_error="x")
    assert [(p.pipeline, p.state, p.last_error) for p in told] == [
        ("p", "running", None),
        ("p", "running", "x"),
    ]


def done(batch, seconds, newest, **report):
    part = PartitionReport(max_ts=newest, first_offset=0, last_offset=9, count=10)
    found = BatchReport(partitions={("events", 0): part}, **report)
    return BatchDone(
        watermarks={},
        standing=Position(
            batch=batch,
            batch_time=50_000,
            offsets={"events": {0: 10 * batch}},
            watermark=WatermarkState(marks={0: Mark(value=newest)}),
            next_due={0: newest + chains(PLAN)[0].driving.ttl - 7_000},
        ),
        report=found,
        size=10,
        seconds=seconds,
        phases={"task.run.0": 4.0},
        executed=Executed(report=found, output=None),
        holder=(("events", 1), None),
    )


def test_what_receivers_measure_is_told_from_time_to_time():
    received = {Series("level", "journal_waiting", (("source", "s"),)): Measure(3)}
    told, clock = [], iter((0.0, 0.5, 1.5, 1.5, 3.0, 3.0, 5.0))
    watch = Watch("p", told.append, lambda: next(clock), received=lambda: received)
    watch.look()
    assert told == []
    watch.look()
    assert dict(told[-1].received) == received
    watch.look()
    assert len(told) == 1


def test_what_batches_say_adds_up():
    told, clock = [], iter((0.0, 2.0, 4.0))
    watch = Watch("p", told.append, lambda: next(clock))
    notes = ({"sizes": {"1-0": (5, 100), "1-1": (1, 10)}}, {"rows": {"o": 3}, "dead_letters": 1})
    watch.batch_done(
        done(1, 1.0, 9_000, lookups={"profiles": (4, 1)}, notes=notes), {"events": {0: 25}}, PLAN
    )
    named = [f"00-{n:032x}-{n:016x}-01" for n in (1, 2, 3)]
    notes = (
        {"sizes": {"1-1": (4, 40)}},
        {"rows": {"o": 2}, "traceparents": named[:2]},
        {"rows": {"o": 3}, "traceparents": named[1:]},
    )
    watch.batch_done(
        done(2, 0.5, 8_000, lookups={"profiles": (6, 6)}, notes=notes),
        {"events": {0: 25}},
        PLAN,
        run=4,
    )
    at = told[-1]
    assert (at.run, at.links) == (4, tuple(named))
    assert (at.batch, at.batch_records, at.records, at.lag) == (2, 10, 20, {"events": 5})
    assert at.records_per_second == 5.0
    assert at.busy == pytest.approx(1.5 / 4)
    assert at.steps["sql"] == 8.0
    assert at.newest == {"events": 9_000}
    assert at.lookups == {"profiles": (10, 7)}
    assert at.sizes == {"1:profiles": (9, 140)}
    assert (at.delivered, at.letters) == (3 + 2 + 3, 1)
    assert at.offsets == {"events": {0: 20}}
    assert (at.holder, at.holder_at) == (("events", 1), None)
    assert at.waited == 7_000
    assert at.watermark == 8_000


def test_the_ledger_is_an_operator_of_its_own():
    assert operator_name(PLAN, "1-1") == "1:profiles"
    flow = stored_plan("ledger").flow
    assert [operator_name(flow, f"{state}-0") for state in (1, 2, 3)] == ["1:b", "2:d", "ledger"]
    assert [level_name(flow, level) for level in range(5)] == [
        "map",
        "join b",
        "join d",
        "deliver",
        "deliver",
    ]


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([], None),
        ([{"run": 5.0}], None),
        ([{"run.0": 5.0, "read.0": 1.0}], None),
        ([{"run.0": 4.0}, {"run.0": 4.0}, {"run.1": 9.0}, {"run.1": 1.0}], 0.9),
        ([{"run.0": 40.0}, {"run.0": 40.0}, {"run.1": 9.0}, {"run.1": 1.0}], 0.5),
        ([{"run.0": 0.0}, {"run.0": 0.0}], None),
    ],
)
def test_skew_is_the_share_of_the_slowest_task(phases, expected):
    assert skew(BatchReport(notes=tuple({"phases": each} for each in phases))) == expected


def test_the_newest_size_of_a_state_partition_counts():
    notes = ({"sizes": {"1-0": [1, 2]}}, {"other": 1}, {"sizes": {"1-1": [3, 4]}})
    assert state_sizes(BatchReport(notes=notes)) == {"1-0": (1, 2), "1-1": (3, 4)}


@pytest.mark.parametrize(
    ("latest", "seen", "to_end", "expected"),
    [
        ((), (), {}, None),
        ((("events", 0, 9),), (("events", 0, 100),), {}, (("events", 0), 9)),
        (
            (("events", 0, 9), ("events", 1, 5)),
            (("events", 0, 100), ("events", 1, 100)),
            {},
            (("events", 1), 5),
        ),
        ((("events", 0, 9),), (("events", 0, 100), ("events", 1, 1)), {}, (("events", 1), None)),
        (
            (("events", 0, 9), ("events", 1, 5)),
            (("events", 0, 10**9), ("events", 1, 0)),
            {("events", 0): True, ("events", 1): True},
            (("events", 0), 9),
        ),
    ],
    ids=["nothing read", "one", "the slowest", "one without a record", "an idle one lets go"],
)
def test_who_holds_the_watermark(latest, seen, to_end, expected):
    state = WatermarkState(marks={0: Mark(value=5)}, latest=latest, seen=seen)
    assert holder(state, clocks(PLAN), 10**9, to_end) == expected


@pytest.mark.parametrize(
    ("master", "count"), [("local[3]", 3), ("local[2,1]", 2), ("local", 1), ("yarn", 2)]
)
def test_cores_of_a_master(master, count):
    assert cores(master) == count
