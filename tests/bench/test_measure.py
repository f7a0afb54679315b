"""Rates, percentiles, slopes, shares."""

import pytest

from bench.measure.rates import Batch, grown, median, percentile, slope, steady_rate, warm_up
from bench.report.shares import STEPS, shares
from kaflow_engine.telemetry.steps import steps_of


def _batches(*spans: tuple[float, int]) -> list[Batch]:
    end, found = 0.0, list[Batch]()
    for span, records in spans:
        end += span
        found.append(Batch(end=end, records=records, spent=span - 10))
    return found


def test_warm_up_and_the_last_short_batch_do_not_count():
    batches = _batches((9_000, 100), (5_000, 100), (100, 100), (300, 100), (50, 20))
    rate = steady_rate(batches, first=2)
    assert rate.batches == 2
    assert rate.records_per_s == pytest.approx(200 / 0.4)
    assert rate.batch_ms == 200
    assert (rate.start, rate.stop) == (14_000, 14_400)
    assert rate.between_ms == pytest.approx(10)


@pytest.mark.parametrize(("batches", "first"), [(0, 1), (1, 1), (2, 1), (5, 2), (16, 8)])
def test_the_first_half_warms_up(batches: int, first: int):
    assert warm_up(batches) == first


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_batches_are_refused(count: int):
    with pytest.raises(ValueError, match=f"{count} batches are too few"):
        steady_rate(_batches(*[(100.0, 10)] * count), first=2)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([5], 0.5, 5),
        ([1, 2, 3, 4], 0.5, 2),
        ([1, 2, 3, 4, 5], 0.5, 3),
        (list(range(1, 101)), 0.99, 99),
        (list(range(1, 101)), 0.95, 95),
        ([3, 1, 2], 1.0, 3),
        ([3, 1, 2], 0.0, 1),
    ],
)
def test_percentile(values: list[float], share: float, expected: float):
    assert percentile(values, share) == expected


def test_nothing_has_neither_median_nor_percentile():
    for function in (lambda: median([]), lambda: percentile([], 0.5)):
        with pytest.raises(ValueError, match="no values"):
            function()


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], 0.0),
        ([(1, 5)], 0.0),
        ([(0, 0), (1, 2), (2, 4)], 2.0),
        ([(0, 3), (1, 3), (2, 3)], 0.0),
        ([(0, 0), (1, 3), (2, 0)], 0.0),
    ],
)
def test_slope(points: list[tuple[float, float]], expected: float):
    assert slope(points) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [(0, 10, 5.0), (5, 15, 12.5), (-5, 5, 2.5), (15, 99, 10.0), (10, 10, 0.0)],
)
def test_growth_between_samples(start: float, stop: float, expected: float):
    assert grown([(0, 0), (10, 5), (20, 25)], start, stop) == expected


PHASES = {
    "log": 3.0,
    "execute": 100.0,
    "task.read.0": 20.0,
    "task.read.1": 5.0,
    "task.run.0": 30.0,
    "task.run.1": 60.0,
    "task.open": 1.0,
    "task.state": 9.0,
    "task.changes": 4.0,
    "task.close": 2.0,
    "task.deliver": 25.0,
    "task.deliver.produce": 18.0,
    "task.deliver.commit": 5.0,
}


def test_steps_take_apart_what_tasks_did():
    assert steps_of(PHASES) == {
        "input": 20.0,
        "exchange": 5.0,
        "state_read": 10.0,
        "state_write": 6.0,
        "produce": 20.0,
        "commit": 5.0,
        "sql": 51.0,
    }


def test_shares_add_up_to_one():
    found = shares([PHASES, PHASES], [100.0, 100.0], 2)
    assert list(found) == list(STEPS)
    assert sum(found.values()) == pytest.approx(1, abs=0.001)
    assert found["outside_tasks"] == pytest.approx((400 - 2 * 117) / 400, abs=0.001)


def test_tasks_that_overlap_with_the_batch_before_do_not_make_more_than_one():
    assert sum(shares([PHASES], [10.0], 2).values()) == pytest.approx(1, abs=0.001)


def test_no_batches_have_no_shares():
    assert set(shares([], [], 2).values()) == {0.0}
