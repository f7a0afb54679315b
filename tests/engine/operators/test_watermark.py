"""How the watermarks of several chains move, and how they are stored."""

import json

import pytest

from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.operators.rows.reports import BatchReport, PartitionReport
from kaflow_engine.operators.watermark import (
    END,
    Mark,
    WatermarkState,
    advance,
    ended,
    holder,
)

IDLE = 1_000


def topic(index, name, dimension=False):
    return TopicParams(
        index=index,
        name=name,
        format="json",
        columns=(),
        event_time=None,
        dimension=dimension,
        rank=2,
        driving=True,
        on_error="dead_letter",
        max_future=0,
        lateness=5,
        idle_timeout=IDLE,
    )


A, B, D = topic(0, "a"), topic(1, "b"), topic(2, "d", dimension=True)
CLOCKS = {0: (A, D), 1: (A, B), 4: (B,)}


def report(**times):
    return BatchReport(
        partitions={
            (name, 0): PartitionReport(max_ts=at, first_offset=0, last_offset=0, count=1)
            for name, at in times.items()
        }
    )


def after(*batches, clocks=CLOCKS):
    """Return the watermarks after batches of (batch time, times read)."""
    state = WatermarkState()
    places = {("a", 0): True, ("b", 0): True, ("d", 0): True}
    for batch_time, times in batches:
        state = advance(state, clocks, report(**times), batch_time, places)
    return state


MOVES = [
    # a chain has a watermark when each of its topics has a record
    ([(0, {})], {}, None),
    ([(0, {"a": 100})], {0: 95}, None),
    ([(0, {"a": 100, "b": 70})], {0: 95, 1: 65, 4: 65}, 65),
    # another chain, and a dimension, do not move it
    ([(0, {"a": 100, "b": 70}), (1, {"a": 900, "d": 999})], {0: 895, 1: 65, 4: 65}, 65),
    ([(0, {"a": 100, "b": 70}), (1, {"b": 90})], {0: 95, 1: 85, 4: 85}, 85),
    # a topic that is idle holds no chain; one without another goes on by time
    (
        [(0, {"a": 100, "b": 70}), (IDLE + 10, {"a": 300})],
        {0: 295, 1: 295, 4: 65 + 10},
        75,
    ),
]


@pytest.mark.parametrize(("batches", "values", "least"), MOVES)
def test_the_watermark_of_a_chain_follows_its_own_topics(batches, values, least):
    state = after(*batches)
    assert (state.values, state.least) == (values, least)


def test_a_chain_that_is_gone_holds_nothing_and_a_new_one_begins_with_its_first_batch():
    state = after((0, {"a": 100, "b": 70}))
    gone = {0: (A, D), 7: (A,)}
    state = advance(state, gone, report(a=200), 1, {("a", 0): True})
    assert state.values == {0: 195, 7: 195}


def test_the_end_is_for_all_chains():
    assert ended(after((0, {"a": 100})), CLOCKS).values == {0: END, 1: END, 4: END}


HOLDERS = [
    ([(0, {"a": 100, "b": 70})], (("b", 0), 70)),
    ([(0, {"a": 50, "b": 70})], (("a", 0), 50)),
    # chain 1 has no watermark: of its topics the one without a record holds it
    ([(0, {"a": 100})], (("b", 0), None)),
    # the chain that is behind goes on by time: no partition holds it
    ([(0, {"a": 100, "b": 70}), (IDLE + 10, {"a": 300})], None),
]


@pytest.mark.parametrize(("batches", "expected"), HOLDERS)
def test_the_partition_that_holds_the_least_watermark(batches, expected):
    places = {("a", 0): True, ("b", 0): True}
    assert holder(after(*batches), CLOCKS, batches[-1][0], places) == expected


STORED = [
    ({0: Mark()}, {"value": None, "base": None}),
    ({0: Mark(value=7, base=6)}, {"value": 7, "base": 6}),
    ({0: Mark(value=7)}, {"value": 7, "base": None}),
    (
        {0: Mark(value=7, base=6), 2: Mark()},
        {"value": {"0": 7, "2": None}, "base": {"0": 6, "2": None}},
    ),
    ({2: Mark(value=7)}, {"value": {"2": 7}, "base": {"2": None}}),
]


@pytest.mark.parametrize(("marks", "stored"), STORED)
def test_marks_are_stored_as_before_where_chain_0_is_the_only_one(marks, stored):
    state = WatermarkState(marks=marks, latest=(("a", 0, 9),), seen=(("a", 0, 1),))
    data = {**stored, "latest": [["a", 0, 9]], "seen": [["a", 0, 1]]}
    assert state.to_json() == data
    assert WatermarkState.from_json(json.loads(json.dumps(data))) == state
