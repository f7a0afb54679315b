"""How long a delivery may take, and how much of it may be under way: one setting decides it all."""

from dataclasses import dataclass
from math import inf

STALL = 30.0
"""Seconds without an acknowledgement after which the brokers count as away."""

_SLOWEST = 256 * 2**10
"""Bytes a second that a task delivers at least; where brokers take less, it takes further tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Limits of one delivery; a transaction that reaches them ends, and the next one goes on."""

    fill: float
    """Seconds after which a transaction takes no further rows."""
    queued: int
    """Bytes that may wait in the client, which are what is left to send from then on."""
    flush: float
    """Seconds until these must be acknowledged."""
    stall: float
    """Seconds that may pass without any acknowledgement."""


def pace_of(transaction_timeout: int | None, slower: int = 0) -> Pace:
    """Return the limits of a delivery.

    A quarter of the transaction's time is for rows to come, half of it for what then still waits
    in the client, and the rest for the commit. Without transactions nothing ends a delivery whose
    rows are acknowledged one after the other.

    Args:
        transaction_timeout: Milliseconds after which brokers abort a transaction; None: there are
            no transactions.
        slower: How many tries of the batch have failed; each halves what may wait in the client.
    """
    if transaction_timeout is None:
        return Pace(fill=inf, queued=int(STALL * _SLOWEST), flush=inf, stall=STALL)
    seconds = transaction_timeout / 1000
    return Pace(
        fill=seconds / 4 / (1 << min(slower, 8)),
        queued=max(1, int(seconds / 2 * _SLOWEST) >> min(slower, 16)),
        flush=seconds / 2,
        stall=min(STALL, seconds / 2),
    )
