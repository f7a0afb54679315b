"""How EXCHANGE rows travel between tasks: numbers packed into one column.

Spark converts rows column by column, to its own form and back, so that few columns travel faster;
and a list column takes it quadratic time where most lists are null.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.state.binary_columns import bytes_of_lists, fixed, heads, lists_of_bytes

WIRE = pa.schema(
    [
        pa.field("part", pa.int32()),
        pa.field("numbers", pa.binary()),
        *(EXCHANGE.field(name) for name in ("key", "payload", "raw", "value")),
        pa.field("members", pa.binary()),
    ]
)
"""Rows between tasks; `numbers` and `members` are in the machine's byte order."""

_SMALL = ("target", "kind", "side", "t_phase", "t_role", "t_topic", "t_part", "d_part")
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
        "numbers": fixed(numbers),
        "members": bytes_of_lists(rows["members"].combine_chunks()),
    }
    return pa.Table.from_arrays(
        [columns[n] if n in columns else rows[n] for n in WIRE.names], schema=WIRE
    )


def of_wire(rows: pa.Table) -> pa.Table:
    """Return rows of schema WIRE as rows of schema EXCHANGE."""
    numbers = heads(rows["numbers"].combine_chunks(), _NUMBERS)
    columns: dict[str, Any] = {"members": lists_of_bytes(rows["members"].combine_chunks())}
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
