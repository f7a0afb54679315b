"""Reads the index by due time, shard by shard."""

from collections.abc import Iterator

from kaflow_engine.state.keys import DUE, due_range, split_due
from kaflow_engine.state.reader import Entries, StateReader

AT_ONCE = 20_000
"""Keys of the index that are read at once, unless some are pages."""
_PAGES = 64
"""As many where some may be."""

_ALL = 1 << 70


def read_index(
    state: StateReader, shards: range, horizon: int
) -> Iterator[tuple[Entries, int | None]]:
    """Yield what stands in the index before a time, in parts of one shard each.

    Args:
        state: Of one partition.
        shards: Those of it.
        horizon: Epoch milliseconds; what is due then is left out.

    Yields:
        Keys with their values, and with the last ones of a shard the time of the next one there;
        None: there is none.
    """
    for shard, soonest in _soonest(state, shards):
        start, stop = due_range(shard, horizon)
        if stop is not None and soonest >= stop:
            yield Entries([], []), split_due(soonest)[1]
            continue
        most = _PAGES
        while len((found := state.range(start, stop, most)).keys) == most:
            yield found, None
            start = found.keys[-1] + b"\0"
            most = _PAGES if any(found.values) else AT_ONCE
        end = due_range(shard, _ALL)[1]
        rest = state.range(stop, end, 1).keys if stop is not None and stop != end else []
        yield found, split_due(rest[0])[1] if rest else None


def _soonest(state: StateReader, shards: range) -> Iterator[tuple[int, bytes]]:
    """Yield shards that have an index by due time, and its first key; the others are passed over.

    A small batch would otherwise look twice into each of 256 shards.
    """
    shard = shards.start
    while shard < shards.stop:
        # no key of a shard lies behind its index, so the next one tells which shard has any
        keys = state.range(bytes((shard, DUE)), None, 1).keys
        if not keys:
            return
        (soonest,) = keys
        if soonest[0] == shard:
            yield shard, soonest
            shard += 1
        else:
            shard = soonest[0]
