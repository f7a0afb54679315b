"""The index by due time: how it is read, and its pages.

A page notes what falls due about the same time under one key of the index, because an entry that
has a key to itself costs as much there as in the state. It is `count | due times | lengths |
entries`, under the key of its earliest due time and a digest of itself: two pages that begin alike
are two keys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.binary_columns import Items, contents, heads
from kaflow_engine.state.keys import DUE, due_key, due_keys, due_range, entries_due, split_due
from kaflow_engine.state.reader import Entries, StateReader

MOST = 500
"""Entries of a page; when the first ones fall due, the rest is written again."""

AT_ONCE = 20_000
"""Keys of the index that are read at once, unless some are pages."""
_PAGES = 64
"""As many where some may be."""

_ALL = 1 << 70

_COUNT = np.dtype("<i4")
_DUE, _LENGTH = np.dtype("<i8"), np.dtype("<i4")
_DIGEST = 8


@dataclass(frozen=True, slots=True)
class Dues:
    """Entries of one shard or several, and when they fall due."""

    times: Items
    """Epoch milliseconds (int64)."""
    entries: pa.BinaryArray
    """Their keys."""

    def filter(self, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> "Dues":
        """Return some of them."""
        return Dues(self.times[kept], self.entries.filter(pa.array(kept)))


def _joined(some: Sequence[Dues]) -> Dues:
    """Return all of several."""
    return Dues(
        np.concatenate([each.times for each in some]),
        pa.concat_arrays([each.entries for each in some]),
    )


def to_pages(dues: Dues, *, mixed: bool) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return keys and values of the index, the same ones whatever the order of the entries.

    Args:
        dues: Entries that must be noted, each once.
        mixed: A page may hold several due times; else its key says that of all.
    """
    order = pc.sort_indices(dues.entries).to_numpy()
    shards = heads(dues.entries, np.dtype("u1"))
    order = order[np.lexsort((dues.times[order], shards[order]))]
    times, shards = dues.times[order], shards[order]
    entries = dues.entries.take(pa.array(order))
    parts = np.diff(shards, prepend=-1) != 0
    if not mixed:
        parts |= np.diff(times, prepend=times[:1] - 1) != 0
    starts = np.flatnonzero(parts)
    within = np.arange(len(times)) - np.repeat(starts, np.diff(starts, append=len(times)))
    bounds = np.append(np.flatnonzero(within % MOST == 0), len(times))
    alone = np.diff(bounds) == 1
    single = bounds[:-1][alone]
    keys = due_keys(entries.take(pa.array(single)), times[single])
    lengths = pc.binary_length(entries).to_numpy().astype(_LENGTH)
    ends, content = contents(entries)
    found: list[bytes] = []
    pages: list[bytes] = []
    for begin, end in zip(bounds[:-1][~alone].tolist(), bounds[1:][~alone].tolist(), strict=True):
        page = b"".join(
            (
                _COUNT.type(end - begin).tobytes(),
                times[begin:end].astype(_DUE).tobytes(),
                lengths[begin:end].tobytes(),
                content[ends[begin] : ends[end]].tobytes(),
            )
        )
        pages.append(page)
        digest = blake2b(page, digest_size=_DIGEST).digest()
        found.append(due_key(int(shards[begin]), int(times[begin]), digest))
    return (
        pa.concat_arrays([keys, pa.array(found, pa.binary())]),
        pa.concat_arrays(
            [pa.repeat(pa.scalar(b"", pa.binary()), len(keys)), pa.array(pages, pa.binary())]
        ),
    )


def of_index(keys: Sequence[bytes], values: Sequence[bytes]) -> Dues:
    """Return what keys of the index note: one entry each, or a page."""
    single = [key for key, value in zip(keys, values, strict=True) if not value]
    times = np.array([split_due(key)[1] for key in single], np.int64)
    found = [Dues(times, entries_due(pa.array(single, pa.binary())))]
    return _joined([*found, *(_read(value) for value in values if value)])


def _read(page: bytes) -> Dues:
    count = int(np.frombuffer(page, _COUNT, 1)[0])
    at = _COUNT.itemsize
    times = np.frombuffer(page, _DUE, count, at)
    at += count * _DUE.itemsize
    lengths = np.frombuffer(page, _LENGTH, count, at)
    at += count * _LENGTH.itemsize
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(memoryview(page)[at:])]
    return Dues(times, pa.Array.from_buffers(pa.binary(), count, buffers))


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
