"""What is made of measured numbers: steady rates, percentiles, slopes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch that was committed."""

    end: float
    """Milliseconds, of any clock."""
    records: int
    spent: float
    """Milliseconds between its begin and its commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Throughput over steady batches."""

    records_per_s: float
    batches: int
    batch_ms: float
    """Median from one commit to the next."""
    between_ms: float
    """Median of the time between a commit and the begin of the next batch."""
    start: float
    """When the clock began, on that of the batches."""
    stop: float


def warm_up(batches: int) -> int:
    """Return how many batches do not count: the first half, in which Java still compiles."""
    return max(batches // 2, 1)


def steady_rate(batches: Sequence[Batch], first: int, full: float = 0.9) -> Rate:
    """Return the rate over full batches after the first ones, with the time between them.

    A batch takes from the commit before it to its own, so that nothing is left out; the last
    batch, which is rarely full, does not count.

    Args:
        batches: In order.
        first: How many of the first do not count; the clock starts with the end of the last.
        full: A batch counts if it has this share of the records of the largest.

    Raises:
        ValueError: No batch is left.
    """
    most = max((batch.records for batch in batches), default=0)
    pairs = [
        (before, batch)
        for before, batch in zip(batches[first - 1 :], batches[first:], strict=False)
        if batch.records >= full * most
    ]
    if not pairs:
        raise ValueError(f"{len(batches)} batches are too few after {first} to warm up")
    spans = [batch.end - before.end for before, batch in pairs]
    return Rate(
        records_per_s=sum(batch.records for _, batch in pairs) / sum(spans) * 1000,
        batches=len(pairs),
        batch_ms=median(spans),
        between_ms=median([max(s - b.spent, 0.0) for s, (_, b) in zip(spans, pairs, strict=True)]),
        start=pairs[0][0].end,
        stop=pairs[-1][1].end,
    )


def grown(points: Sequence[tuple[float, float]], start: float, stop: float) -> float:
    """Return by how much y, which is known at some x only, grew between two others.

    >>> grown([(0, 0), (10, 5), (20, 25)], 5, 15)
    12.5
    """
    return _between(points, stop) - _between(points, start)


def _between(points: Sequence[tuple[float, float]], at: float) -> float:
    if at <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if at <= x1:
            return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return points[-1][1]


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two in the middle.

    >>> median([3, 1, 2]), median([4, 1, 2, 3])
    (2, 2.5)
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that is not below this share of all values.

    >>> percentile([10, 20, 30, 40], 0.5), percentile([10, 20, 30, 40], 0.99)
    (20, 40)
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(ceil(share * len(ordered)) - 1, 0)]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return by how much y grows with x, by least squares; 0 where x does not change.

    >>> slope([(0, 1), (1, 3), (2, 5)])
    2.0
    """
    if not points:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
