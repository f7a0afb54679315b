"""Changes that are held back: what the state holds of them, and how long."""

# pyright: basic

import json

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.graph import throttles
from kaflow_engine.flow.timed import Throttle
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import chosen_sides, describe, operator_called
from kaflow_engine.operators.throttle.sent_keys import Held, SentKey, read_sent, sent_value
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.operators.written import count_entries
from tests.property.executor import _table
from tests.reference.records import Record

T0 = 1_767_225_600_000
COLUMNS = {"t": (Column("k", "VARCHAR"), Column("v", "INTEGER"))}


def plan_with(every, query="SELECT k, sum(v) AS s FROM t GROUP BY k"):
    author = {"name": "p", "query": query, "output": {"topic": "o", "every": every}}
    return build_plan(pipeline_from_mapping(author, Location("p.yaml")), Config(), COLUMNS).plan


class Run:
    """A pipeline over one topic, whose records are (key, number)."""

    def __init__(self, plan):
        self.plan, self.offset = plan, 0
        self.pipeline = LocalPipeline(plan, {"t": range(1)}, replay=True)

    def at(self, second, *values):
        """Take records at a batch time; returns key and sum of what leaves."""
        ts = T0 + second * 1000
        records = [
            Record(topic="t", offset=self.offset + n, ts=ts, value={"k": k, "v": v})
            for n, (k, v) in enumerate(values)
        ]
        self.offset += len(records)
        return _shown(self.pipeline.run(_table(records), ts))

    def end(self, second):
        return _shown(self.pipeline.end(T0 + second * 1000))

    @property
    def entries(self):
        return count_entries(self.plan, self.pipeline, Throttle)


def _shown(batch):
    rows = sorted((row["key"].decode(), row["value"]) for row in batch.output.to_pylist())
    return [(key, json.loads(value)["s"]) for key, value in rows]


@pytest.mark.parametrize(
    "kept",
    [
        SentKey(7, b"x", None),
        SentKey(-7, None, None),
        SentKey(7, b"", Held(b"", 5)),
        SentKey(7, None, Held(b"y", -5)),
        SentKey(1 << 60, b"x", Held(None, 5)),
        SentKey(7, b"x", Held(b"y", 5, '[["a",null]]'), ""),
        SentKey(7, b"x", Held(b"", 5), "[]"),
        SentKey(7, None, Held(None, 5, "[]")),
    ],
)
def test_what_is_kept_of_a_key_is_read_as_it_was_written(kept):
    assert read_sent(sent_value(kept)) == kept


def test_a_key_whose_time_has_passed_is_forgotten():
    run = Run(plan_with("10s"))
    assert run.at(0, ("a", 1), ("b", 1)) == [("a", 1), ("b", 1)]
    assert run.entries == 4  # an entry for each, and its place in the index by due time
    assert run.at(1, ("a", 1)) == []
    assert run.at(10) == [("a", 2)]
    assert run.entries == 2
    assert run.at(19) == []
    assert run.at(20) == []
    assert run.entries == 0
    assert run.at(21, ("a", 1)) == [("a", 3)]


def test_a_change_that_comes_when_the_time_has_passed_leaves_instead_of_what_is_held():
    run = Run(plan_with("10s"))
    assert run.at(0, ("a", 1)) == [("a", 1)]
    assert run.at(5, ("a", 1)) == []
    assert run.at(12, ("a", 1)) == [("a", 3)]
    assert run.at(21, ("a", 1)) == []
    assert run.at(22) == [("a", 4)]


def test_what_is_held_leaves_when_it_was_due_whatever_every_is_since():
    run = Run(plan_with("1m"))
    run.at(0, ("a", 1))
    run.at(1, ("a", 1))
    run.pipeline.go_on(plan_with("0s"))
    assert run.at(2, ("a", 1), ("b", 1)) == [("b", 1)]
    assert run.at(3, ("b", 1)) == [("b", 2)]
    assert run.at(60) == [("a", 3)]
    assert run.at(61, ("a", 1)) == [("a", 4)]
    assert run.entries == 0


def test_the_end_of_a_bounded_run_sends_what_is_held_and_keeps_nothing():
    run = Run(plan_with("1h"))
    run.at(0, ("a", 1), ("b", 1))
    run.at(1, ("a", 1))
    assert run.end(2) == [("a", 2)]
    assert run.entries == 0


def test_the_state_shows_what_is_sent_and_held():
    plan = plan_with("10s")
    (throttle,) = throttles(plan)
    (side,) = chosen_sides(plan, throttle.state)
    assert operator_called(throttle.state, plan) == "throttle:o"
    assert describe(side, plan) == "keys that sent a change, and changes that are held"
    run = Run(plan)
    run.at(0, ("a", 1))
    run.at(1, ("a", 1))
    run.at(2)
    states = [run.pipeline._world.state((throttle.state, p)) for p in range(plan.partitions)]
    found = [state.range(b"\0", None) for state in states]
    pairs = [(k, v) for each in found for k, v in zip(each.keys, each.values, strict=True)]
    entries = [(key, value) for key, value in pairs if value]
    shown = decode(plan, side, *map(list, zip(*entries, strict=True)))
    (row,) = shown.rows.to_pylist()
    assert (row["key"], row["due"], row["holds"]) == ("a", T0 + 10_000, True)
    assert (row["sent"], row["held"]) == (b'{"k":"a","s":1}', b'{"k":"a","s":2}')
