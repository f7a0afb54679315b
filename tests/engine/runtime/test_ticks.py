import pytest

from kaflow_engine.operators.rows.reports import BATCH_TIME
from kaflow_engine.operators.watermark import END
from kaflow_engine.runtime.clock.ticks import Clockwork, clocks_at, due_chains, wants_tick


@pytest.mark.parametrize(
    ("watermarks", "next_due", "due"),
    [
        ({}, {0: 5}, set()),
        ({0: 5}, {}, set()),
        ({0: 5}, {0: 5}, set()),
        ({0: 6}, {0: 5}, {0}),
        ({0: 6, 2: 5}, {0: 5, 2: 5}, {0}),
        ({0: 6, 2: 5}, {2: 4}, {2}),
        ({0: 6}, {0: 5, 2: 4}, {0}),
    ],
)
def test_which_chains_have_something_due(watermarks, next_due, due):
    assert due_chains(watermarks, next_due) == due


def test_batch_time_is_a_clock_beside_the_watermarks_and_ends_with_them():
    assert clocks_at({}, 7) == {BATCH_TIME: 7}
    assert clocks_at({0: 5, 2: 6}, 7) == {0: 5, 2: 6, BATCH_TIME: 7}
    assert clocks_at({0: END}, 7) == {0: END, BATCH_TIME: END}
    assert due_chains(clocks_at({0: 5}, 7), {0: 5, BATCH_TIME: 6}) == {BATCH_TIME}


@pytest.mark.parametrize(
    ("quiet", "unticked", "next_due", "watermarks", "after", "tick"),
    [
        (1000, 1000, {}, {0: 10}, {0: 99}, False),
        (1000, 1000, {0: 50}, {0: 10}, {0: 50}, False),
        (1000, 1000, {0: 50}, {0: 51}, {0: 51}, True),
        (1000, 1000, {0: 50}, {0: 10}, {0: 51}, True),
        (1000, 1000, {0: 50}, {}, {}, False),
        (100, 1000, {0: 50}, {0: 51}, {0: 51}, False),
        (1000, 500, {0: 50}, {0: 51}, {0: 51}, False),
        (1000, 1000, {1: 50}, {0: 99, 1: 10}, {0: 99, 1: 10}, False),
        (1000, 1000, {1: 50}, {0: 10, 1: 10}, {0: 10, 1: 51}, True),
    ],
    ids=[
        "nothing",
        "not yet",
        "due",
        "due by time",
        "no watermark",
        "busy",
        "ticked just now",
        "another chain's watermark",
        "one of two chains",
    ],
)
def test_wants_tick(quiet, unticked, next_due, watermarks, after, tick):
    clockwork = Clockwork(
        now=10_000,
        last_batch_end=10_000 - quiet,
        last_tick_end=10_000 - unticked,
        next_due=next_due,
        watermarks=watermarks,
        watermarks_after=after,
    )
    assert wants_tick(clockwork) is tick
