"""Pages of the index by due time: what falls due about the same time, under one key of the index.

An entry that has a key of the index to itself costs as much there as in the state. A page is
`count | due times | lengths | entries`, under the key of its earliest due time and a digest of
itself: two pages that begin alike are two keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.binary_columns import Items, contents, heads
from kaflow_engine.state.keys import due_key, due_keys, entries_due, split_due

MOST = 500
"""Entries of a page; when the first ones fall due, the rest is written again."""

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


def joined_dues(some: Sequence[Dues]) -> Dues:
    """Return all of several."""
    return Dues(
        np.concatenate([each.times for each in some]),
        pa.concat_arrays([each.entries for each in some]),
    )


def to_pages(dues: Dues, *, mixed: bool) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return keys and values of the index, the same ones whatever the order of the entries.

    Args:
        dues: What is to be noted, each entry once.
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
    return joined_dues([*found, *(_read(value) for value in values if value)])


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
