import pytest

from kaflow_engine.runtime.clock.ticks import Clockwork, due_chains, wants_tick


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
