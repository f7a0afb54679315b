"""How EXCHANGE rows travel between tasks: numbers packed into one column.

Spark converts rows column by column, to its own form and back, so that few columns travel faster;
and a list column takes it quadratic time where most lists are null.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.schemas import EXCHANGE, MEMBERS

WIRE = pa.schema(
    [
        pa.field("part", pa.int32()),
        pa.field("numbers", pa.binary()),
        *(EXCHANGE.field(name) for name in ("key", "payload", "raw", "value")),
        pa.field("members", pa.binary()),
    ]
)
"""Rows between tasks; `numbers` and `members` are in the machine's byte order."""

_SMALL = ("stage", "kind", "side", "t_phase", "t_role", "t_topic", "t_part", "d_part")
_LARGE = ("t_time", "t_off", "d_batch", "d_time", "d_off", "ts")
_FLAGS = ("doomed", "counted", "forced")
_NAMES = (*_SMALL, *_LARGE, *_FLAGS)
_NUMBERS = np.dtype(
    [
        *((name, "i4") for name in _SMALL),
        *((name, "i8") for name in _LARGE),
        *((name, "u1") for name in _FLAGS),
        ("nulls", "u4"),
    ]
)


def to_wire(rows: pa.Table) -> pa.Table:
    """Return rows of schema EXCHANGE as rows of schema WIRE."""
    numbers = np.zeros(rows.num_rows, _NUMBERS)
    for bit, name in enumerate(_NAMES):
        column = rows[name]
        if column.null_count == len(column):
            numbers["nulls"] |= 1 << bit
            continue
        if column.null_count:
            numbers["nulls"] |= column.is_null().to_numpy().astype("u4") << bit
            column = pc.fill_null(column, False if name in _FLAGS else 0)
        numbers[name] = column.to_numpy()
    columns = {
        "part": rows["part"],
        "numbers": _fixed(numbers),
        "members": _bytes_of_lists(rows["members"].combine_chunks()),
    }
    return pa.Table.from_arrays(
        [columns[n] if n in columns else rows[n] for n in WIRE.names], schema=WIRE
    )


def of_wire(rows: pa.Table) -> pa.Table:
    """Return rows of schema WIRE as rows of schema EXCHANGE."""
    numbers = _numbers(rows["numbers"].combine_chunks())
    columns: dict[str, Any] = {"members": _lists_of_bytes(rows["members"].combine_chunks())}
    nulls = np.ascontiguousarray(numbers["nulls"])
    always, sometimes = np.bitwise_and.reduce(nulls), np.bitwise_or.reduce(nulls)
    for bit, name in enumerate(_NAMES):
        kind = EXCHANGE.field(name).type
        if always >> bit & 1:
            columns[name] = pa.nulls(len(nulls), kind)
        else:
            mask = (nulls >> bit & 1).astype(np.bool_) if sometimes >> bit & 1 else None
            columns[name] = pa.array(np.ascontiguousarray(numbers[name]), mask=mask).cast(kind)
    return pa.Table.from_arrays(
        [columns[n] if n in columns else rows[n] for n in EXCHANGE.names], schema=EXCHANGE
    )


def _fixed(items: np.ndarray[Any, Any]) -> pa.BinaryArray:
    """Return the items of a structured array as one binary value each."""
    width = pa.binary(items.dtype.itemsize)
    buffers = [None, pa.py_buffer(items)]
    return pa.FixedSizeBinaryArray.from_buffers(width, len(items), buffers).cast(pa.binary())


def _numbers(packed: pa.BinaryArray) -> np.ndarray[Any, Any]:
    if not len(packed):
        return np.zeros(0, _NUMBERS)
    data = packed.buffers()[2]
    start = np.frombuffer(packed.buffers()[1], np.int32, 1, packed.offset * 4)[0]
    return np.frombuffer(data, _NUMBERS, len(packed), start)


def _bytes_of_lists(lists: pa.ListArray) -> pa.BinaryArray:
    if lists.null_count == len(lists):
        return pa.nulls(len(lists), pa.binary())
    found = [None if one is None else np.asarray(one, "i8").tobytes() for one in lists.to_pylist()]
    return pa.array(found, pa.binary())


def _lists_of_bytes(packed: pa.BinaryArray) -> pa.ListArray:
    if packed.null_count == len(packed):
        return pa.nulls(len(packed), MEMBERS)
    found = [None if one is None else np.frombuffer(one, "i8") for one in packed.to_pylist()]
    return pa.array(found, MEMBERS)
