"""Which records of a batch are gone, and how they are counted, whatever was interrupted."""
# pyright: basic

from collections import Counter

import pytest

from kaflow_engine.runtime.losses import _within as within
from kaflow_engine.runtime.losses import left_of, moved_past
from kaflow_engine.runtime.offsets import losses_of


def move(at, first, end):
    counters = Counter()
    found, said = moved_past(at, losses_of(at, first, end), counters)
    return found, dict(counters), len(said)


@pytest.mark.parametrize(
    ("at", "first", "end", "found", "counters"),
    [
        ({"t": {0: 5}}, {"t": {0: 0}}, {"t": {0: 9}}, {"t": {0: 5}}, {}),
        ({"t": {0: 5}}, {"t": {0: 8}}, {"t": {0: 9}}, {"t": {0: 8}}, {"lost": 3}),
        ({"t": {0: 5}}, {"t": {0: 0}}, {"t": {0: 2}}, {"t": {0: 0}}, {"restarted_partitions": 1}),
        ({"t": {0: 5, 1: 5}}, {"t": {0: 0}}, {"t": {0: 9}}, {"t": {0: 5}},
         {"restarted_partitions": 1}),
    ],
)  # fmt: skip
def test_where_to_go_on(at, first, end, found, counters):
    assert move(at, first, end)[:2] == (found, counters)


def left(at, ranges, first, end):
    counters = Counter()
    found, _ = left_of(at, ranges, within(ranges, first, end), counters)
    return found, dict(counters)


@pytest.mark.parametrize(
    ("at", "ranges", "first", "end", "found", "counters"),
    [
        # all of it is there
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 0}}, {"t": {0: 9}}, None, {}),
        # an empty range needs nothing
        ({"t": {0: 2}}, {"t": {0: (2, 2)}}, {"t": {0: 4}}, {"t": {0: 9}}, None, {}),
        # its first half is gone
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 4}}, {"t": {0: 9}},
         {"t": {0: (4, 6)}}, {"lost": 2}),
        # all of it is gone
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 8}}, {"t": {0: 9}},
         {"t": {0: (6, 6)}}, {"lost": 4}),
        # it was logged behind a loss that no commit has counted
        ({"t": {0: 2}}, {"t": {0: (5, 6)}}, {"t": {0: 5}}, {"t": {0: 9}}, None, {"lost": 3}),
        # the topic was recreated
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 0}}, {"t": {0: 3}},
         {"t": {0: (6, 6)}}, {"lost": 4}),
    ],
)  # fmt: skip
def test_what_is_left_of_a_batch_that_is_run_again(at, ranges, first, end, found, counters):
    assert left(at, ranges, first, end) == (found, counters)
