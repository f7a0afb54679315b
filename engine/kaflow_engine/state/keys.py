"""How keys are laid out: `shard | side | length | join key | suffix`, and the index by due time.

Everything of a shard lies together, so that shards can move between partitions as key ranges.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.binary_columns import Items, fixed, heads, joined, pieces
from kaflow_engine.state.reader import successor

DUE = 0xFF
"""The side byte of the index by due time; sides of entries are smaller."""

_HEAD = np.dtype([("side", "u1"), ("length", ">u4")])
_ENTRY = np.dtype([("shard", "u1"), *_HEAD.descr])
_DUE = np.dtype([("side", "u1"), ("due", ">u8")])
_BIAS = 1 << 63
_MAX = (1 << 64) - 1


def entry_key(shard_key: bytes, side: int, suffix: bytes = b"") -> bytes:
    r"""Return the key of an entry.

    No join key's entries share a prefix with another's, because the length comes first.

    >>> entry_key(b"\x07ab", 2, b"!")
    b'\x07\x02\x00\x00\x00\x02ab!'

    Args:
        shard_key: Shard byte, then the join key.
        side: 0 to 254.
        suffix: Tells entries of one side and join key apart.
    """
    return b"%c%c%b%b%b" % (
        shard_key[0],
        side,
        (len(shard_key) - 1).to_bytes(4, "big"),
        shard_key[1:],
        suffix,
    )


def entry_keys(
    shard_keys: pa.BinaryArray, side: int, suffixes: pa.BinaryArray | None = None
) -> pa.BinaryArray:
    """Return the keys of entries, one for each join key behind its shard byte."""
    middle = np.empty(len(shard_keys), _HEAD)
    middle["side"] = side
    middle["length"] = pc.subtract(pc.binary_length(shard_keys), 1).to_numpy(zero_copy_only=False)
    shards, rest = pc.binary_slice(shard_keys, 0, 1), pc.binary_slice(shard_keys, 1, 1 << 31)
    return joined(shards, fixed(middle), rest, *([] if suffixes is None else [suffixes]))


def split_entry(key: bytes) -> tuple[bytes, int, bytes]:
    """Return shard key, side and suffix of an entry's key."""
    end = 6 + int.from_bytes(key[2:6], "big")
    return key[:1] + key[6:end], key[1], key[end:]


def split_entries(keys: pa.BinaryArray) -> tuple[pa.BinaryArray, Items, pa.BinaryArray]:
    """Return shard keys, sides and suffixes of many keys of entries, as `split_entry` does."""
    head = heads(keys, _ENTRY)
    lengths = head["length"].astype(np.int64)
    starts = np.full(len(keys), _ENTRY.itemsize, np.int64)
    own = pieces(keys, starts, lengths)
    behind = starts + lengths
    suffixes = pieces(keys, behind, pc.binary_length(keys).to_numpy() - behind)
    return joined(pc.binary_slice(keys, 0, 1), own), head["side"], suffixes


def due_key(shard: int, due_ms: int, entry: bytes) -> bytes:
    """Return the key in the index by due time, which orders by shard, then time, then entry.

    Args:
        shard: 0 to 255.
        due_ms: Epoch milliseconds, any 64-bit integer.
        entry: Key of the entry that falls due, or whatever tells it apart.
    """
    return b"%c%c%b%b" % (shard, DUE, (due_ms + _BIAS).to_bytes(8, "big"), entry)


def due_keys(entries: pa.BinaryArray, dues_ms: np.ndarray[Any, Any]) -> pa.BinaryArray:
    """Return the keys of entries in the index by due time."""
    middle = np.empty(len(entries), _DUE)
    middle["side"] = DUE
    middle["due"] = np.ascontiguousarray(dues_ms, np.int64).view(np.uint64) ^ np.uint64(_BIAS)
    return joined(pc.binary_slice(entries, 0, 1), fixed(middle), entries)


def split_due(key: bytes) -> tuple[int, int, bytes]:
    """Return shard, due time in epoch milliseconds, and entry of a key of the index."""
    return key[0], int.from_bytes(key[2:10], "big") - _BIAS, key[10:]


def entries_due(keys: pa.BinaryArray) -> pa.BinaryArray:
    """Return the entries of keys of the index."""
    return pc.binary_slice(keys, 1 + _DUE.itemsize, 1 << 31)


def due_range(shard: int, limit_ms: int) -> tuple[bytes, bytes | None]:
    """Return start and stop of what falls due in a shard strictly before a limit.

    A limit beyond 64 bits, such as that of an infinite watermark, takes the whole index.
    """
    start = bytes((shard, DUE))
    biased = limit_ms + _BIAS
    if biased > _MAX:
        return start, successor(start)
    return start, start + max(biased, 0).to_bytes(8, "big")
