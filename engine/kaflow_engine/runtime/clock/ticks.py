"""Ticks: when an empty batch is needed although no record waits."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.operators.rows.reports import BATCH_TIME
from kaflow_engine.operators.watermark import END

QUIET_MS = 200
"""How long no batch must have run before an empty one may: records that wait do its work."""

TICK_MS = 1000
"""The least time between two empty batches: `next_due` is a lower bound, and may call in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clockwork:
    """What the decision depends on; times in epoch milliseconds."""

    now: int
    last_batch_end: int
    last_tick_end: int
    """End of the last empty batch."""
    next_due: Mapping[int, int]
    """By chain, or BATCH_TIME: at which watermark something falls due next; absent: nothing."""
    watermarks: Mapping[int, int]
    """By chain, or BATCH_TIME: what the next batch would be handed."""
    watermarks_after: Mapping[int, int]
    """By chain: what they would be after an empty batch now."""


def clocks_at(watermarks: Mapping[int, int], batch_time: int) -> dict[int, int]:
    """Return watermarks by chain, and beside them batch time, which ends when they do."""
    ends = END in watermarks.values()
    return {**watermarks, BATCH_TIME: END if ends else batch_time}


def due_chains(watermarks: Mapping[int, int], next_due: Mapping[int, int]) -> frozenset[int]:
    """Return the chains in which a batch with these watermarks has something to expire or decide.

    Args:
        watermarks: By chain; absent before its first record.
        next_due: By chain; absent: nothing waits.
    """
    return frozenset(
        chain for chain, due in next_due.items() if chain in watermarks and watermarks[chain] > due
    )


def wants_tick(at: Clockwork) -> bool:
    """Tell whether to run an empty batch now.

    Either something is due, or an empty batch would move a watermark so far that it is: time
    passes only with batches, and a topic falls idle by time.
    """
    if at.now - at.last_batch_end < QUIET_MS or at.now - at.last_tick_end < TICK_MS:
        return False
    marks = (at.watermarks, at.watermarks_after)
    return any(due_chains(each, at.next_due) for each in marks)
