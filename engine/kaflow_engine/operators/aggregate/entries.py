"""What is kept of a group, and under which keys: its columns, and where needed its rows."""

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.windows import FixedWindow, SessionWindow
from kaflow_engine.operators.aggregate.windows import Numbers, ends_of
from kaflow_engine.state.binary_columns import fixed, heads, joined
from kaflow_engine.state.keys import entry_key, entry_keys, split_entry

GROUP, KEPT = 0, 1
"""Side bytes of groups and of the rows kept for them."""

Flags = np.ndarray[Any, np.dtype[np.bool_]]

_HEAD = struct.Struct("<qqiiB")
_HEADS = np.dtype(
    [("ts", "<i8"), ("number", "<i8"), ("length", "<i4"), ("size", "<i4"), ("flags", "u1")]
)
_START = struct.Struct(">Q")
_ROW = struct.Struct(">QI")
_BIAS = 1 << 63
_UNSENT, _BROKEN, _COUNTED, _HELD, _CLOSED = 1, 2, 4, 8, 16
_NONE = -1
_KEY_AT = 6
"""Where the join key stands in the key of an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What is kept of a group."""

    ts: int
    """Greatest event time of its rows."""
    last: int
    """Of a session the greatest event time; else 0."""
    columns: str
    """The accumulators as a packed row."""
    broken: tuple[str, str] | None = None
    """The error, class and message, with which an accumulator failed for good."""
    unsent: bool = False
    """The present result could not be sent."""
    sent: str | None = None
    """Where it is unsent, the row that was sent last; None: none was."""
    rows: int | None = None
    """How many rows it has, where rows are taken away, too."""
    held: bool = False
    """Its window has not ended, so that its row has not left; it is unsent, then."""
    closed: bool = False
    """Its window is closed; it stays for operators that read it as a row of a table."""


def group_value(group: Group) -> bytes:
    """Encode a group."""
    columns = (group.columns if group.broken is None else json.dumps(group.broken)).encode()
    sent = None if group.sent is None else group.sent.encode()
    flags = _UNSENT * group.unsent | _BROKEN * (group.broken is not None)
    flags |= _COUNTED * (group.rows is not None) | _HELD * group.held
    flags |= _CLOSED * group.closed
    size = _NONE if sent is None else len(sent)
    number = group.last if group.rows is None else group.rows
    head = _HEAD.pack(group.ts, number, len(columns), size, flags)
    return b"".join((head, columns, sent or b""))


def read_group(value: bytes) -> Group:
    """Decode what `group_value` wrote."""
    ts, number, length, size, flags = _HEAD.unpack_from(value)
    end = _HEAD.size + length
    columns = value[_HEAD.size : end].decode()
    broken, counted = flags & _BROKEN, flags & _COUNTED
    return Group(
        ts=ts,
        last=0 if counted else number,
        columns="" if broken else columns,
        broken=_error(columns) if broken else None,
        unsent=bool(flags & _UNSENT),
        sent=None if size == _NONE else value[end:].decode(),
        rows=number if counted else None,
        held=bool(flags & _HELD),
        closed=bool(flags & _CLOSED),
    )


@dataclass(frozen=True, slots=True)
class GroupValues:
    """What is kept of many groups."""

    ts: Numbers
    columns: pa.StringArray
    held: Flags


def group_values(ts: Numbers, columns: pa.StringArray, *, held: bool = False) -> pa.BinaryArray:
    """Encode groups that are not broken, as `group_value` does.

    Args:
        ts: The greatest event time of each.
        columns: The accumulators of each.
        held: Their windows have not ended; else their present results were sent.
    """
    head = np.zeros(len(ts), _HEADS)
    head["flags"] = _HELD | _UNSENT if held else 0
    head["ts"], head["size"] = ts, _NONE
    content = columns.cast(pa.binary())
    head["length"] = pc.binary_length(content).to_numpy()
    return joined(fixed(head), content)


def read_group_values(values: pa.BinaryArray) -> GroupValues | None:
    """Decode what `group_values` wrote; None where one of them is broken, or could not be sent."""
    head = heads(values, _HEADS)
    held = head["flags"] == _HELD | _UNSENT
    if head["flags"][~held].any():
        return None
    columns = pc.binary_slice(values, _HEAD.size, 1 << 31).cast(pa.string())
    return GroupValues(head["ts"], columns, held)


def entries_of(keys: pa.BinaryArray, starts: Numbers | None) -> pa.BinaryArray:
    """Return the keys of groups' entries, as `group_entry` does."""
    if starts is None:
        return entry_keys(keys, GROUP)
    biased = (starts.view(np.uint64) ^ np.uint64(_BIAS)).astype(">u8")
    return entry_keys(keys, GROUP, fixed(biased))


def group_entry(key: bytes, start: int | None) -> bytes:
    """Return the key of a group's entry.

    Args:
        key: Its grouping values behind their shard byte.
        start: Of its window, epoch milliseconds; None without a window.
    """
    return entry_key(key, GROUP, _start(start))


def read_entry(aggregate: Aggregate, entry: bytes) -> tuple[bytes, int | None]:
    """Return the grouping values behind their shard byte, and the start of the window."""
    key, _, suffix = split_entry(entry)
    if aggregate.window is None:
        return key, None
    return key, _START.unpack(suffix)[0] - _BIAS


def read_entries(aggregate: Aggregate, entries: pa.BinaryArray) -> tuple[pa.BinaryArray, Numbers]:
    """Return grouping values and starts of windows, as `read_entry` does; without a window 0."""
    shards = pc.binary_slice(entries, 0, 1)
    if aggregate.window is None:
        keys = joined(shards, pc.binary_slice(entries, _KEY_AT, 1 << 31))
        return keys, np.zeros(len(entries), np.int64)
    keys = joined(shards, pc.binary_slice(entries, _KEY_AT, -_START.size))
    biased = heads(pc.binary_slice(entries, -_START.size, 1 << 31), np.dtype(">u8"))
    return keys, (biased.astype(np.uint64) ^ np.uint64(_BIAS)).view(np.int64)


def kept_suffix(start: int | None, tail: bytes) -> bytes:
    """Return the suffix under which a row of a group is kept; without `tail`, how they begin."""
    return _start(start) + tail


def row_tail(batch: int, number: int, identity: bytes = b"") -> bytes:
    """Return what tells rows of a group apart, in their order: a batch, and a number in it; behind
    them what a row of a table is found by."""
    return _ROW.pack(batch, number) + identity


def identity_of(tail: bytes) -> bytes:
    """Return what a kept row of a table is found by."""
    return tail[_ROW.size :]


def end_of(aggregate: Aggregate, start: int | None, last: int) -> int | None:
    """Return the end of a group's window; None without one."""
    match aggregate.window:
        case None:
            return None
        case SessionWindow(gap=gap):
            return last + gap
        case FixedWindow(size=size):
            assert start is not None
            return start + size
        case window:
            assert start is not None
            return int(ends_of(window, np.array([start]))[0])


def over_at(aggregate: Aggregate, group: Group, start: int | None) -> int | None:
    """Return the time behind which a group is over: as soon as the watermark is greater. One that
    is held is not over then, but its row leaves; one that is closed is forgotten.

    None: it stays for good.
    """
    end = end_of(aggregate, start, group.last)
    grace = 0 if group.held else aggregate.grace
    grace += (aggregate.retain or 0) if group.closed else 0
    match aggregate.window:
        case None:
            return None if aggregate.ttl is None else group.ts + aggregate.ttl
        case SessionWindow():  # a row at exactly the end still belongs to it
            assert end is not None
            return end + grace
        case _:
            assert end is not None
            return end + grace - 1


def overs_at(
    aggregate: Aggregate, ts: Numbers, ends: Numbers, held: Flags | bool = False
) -> Numbers:
    """Return the times behind which groups are over, but for sessions; none: they stay for good.

    Args:
        aggregate: Whose groups they are.
        ts: Of each the greatest event time.
        ends: Of each the end of its window.
        held: Those of which that is the time at which their row leaves.
    """
    if aggregate.window is not None:
        return ends + np.where(held, 0, aggregate.grace) - 1
    return np.zeros(0, np.int64) if aggregate.ttl is None else ts + aggregate.ttl


def _error(text: str) -> tuple[str, str]:
    error, message = json.loads(text)
    return error, message


def _start(start: int | None) -> bytes:
    return b"" if start is None else _START.pack(start + _BIAS)
