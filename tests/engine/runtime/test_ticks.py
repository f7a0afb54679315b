import pytest

from kaflow_engine.runtime.clock.ticks import Clockwork, is_due, wants_tick


@pytest.mark.parametrize(
    ("watermark", "next_due", "due"),
    [(None, 5, False), (5, None, False), (5, 5, False), (6, 5, True)],
)
def test_is_due(watermark, next_due, due):
    assert is_due(watermark, next_due) is due


@pytest.mark.parametrize(
    ("quiet", "unticked", "next_due", "watermark", "after", "tick"),
    [
        (1000, 1000, None, 10, 99, False),
        (1000, 1000, 50, 10, 50, False),
        (1000, 1000, 50, 51, 51, True),
        (1000, 1000, 50, 10, 51, True),
        (1000, 1000, 50, None, None, False),
        (100, 1000, 50, 51, 51, False),
        (1000, 500, 50, 51, 51, False),
    ],
    ids=["nothing", "not yet", "due", "due by time", "no watermark", "busy", "ticked just now"],
)
def test_wants_tick(quiet, unticked, next_due, watermark, after, tick):
    clockwork = Clockwork(
        now=10_000,
        last_batch_end=10_000 - quiet,
        last_tick_end=10_000 - unticked,
        next_due=next_due,
        watermark=watermark,
        watermark_after=after,
    )
    assert wants_tick(clockwork) is tick
