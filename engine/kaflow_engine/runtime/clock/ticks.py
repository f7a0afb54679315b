"""Ticks: when an empty batch is needed although no record waits."""

from dataclasses import dataclass

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
    next_due: int | None
    """At which watermark something falls due next; None: nothing waits."""
    watermark: int | None
    """What the next batch would be handed."""
    watermark_after: int | None
    """What it would be after an empty batch now."""


def is_due(watermark: int | None, next_due: int | None) -> bool:
    """Tell whether a batch with this watermark has something to expire or decide."""
    return next_due is not None and watermark is not None and watermark > next_due


def wants_tick(at: Clockwork) -> bool:
    """Tell whether to run an empty batch now.

    Either something is due, or an empty batch would move the watermark so far that it is: time
    passes only with batches, and a topic falls idle by time.
    """
    if at.now - at.last_batch_end < QUIET_MS or at.now - at.last_tick_end < TICK_MS:
        return False
    return is_due(at.watermark, at.next_due) or is_due(at.watermark_after, at.next_due)
