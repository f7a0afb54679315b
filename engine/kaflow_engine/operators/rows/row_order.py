"""Rows in the order of section 1 of the semantics, without a query where integers decide."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.pick import pick
from kaflow_engine.operators.rows.schemas import MEMBERS, ORIGIN, TAKEN, TRIGGER

_ROOM = 1 << 62
"""How many numbers a sort key may be one of."""

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def order_of(rows: pa.Table, names: Sequence[str]) -> Places:
    """Return the places of rows in ascending order of integer columns, the first one foremost."""
    columns = [rows[name].to_numpy() for name in names]
    telling = [column for column in columns if len(column) and np.any(column != column[0])]
    keys: list[Places] = []
    room = 0
    for n, column in enumerate(telling):
        if any(np.array_equal(column, before) for before in telling[:n]):
            continue
        least, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if span > _ROOM:
            keys.append(column)
            room = 0
        elif span > room:
            keys.append(column.astype(np.int64) - least)
            room = _ROOM // span
        else:  # one key is sorted faster than two
            keys[-1] = keys[-1] * span + (column.astype(np.int64) - least)
            room //= span
    return np.lexsort(keys[::-1]) if keys else np.arange(rows.num_rows)


def in_order(rows: pa.Table, branches: Sequence[int] = ()) -> pa.Table:
    """Return rows in the order in which they count; equal ones as they were.

    Of what one record changed in a table, rows that are taken away come first, and then the others
    in the order of their identities: several tasks may have sent them.

    Args:
        rows: Schema EXCHANGE, or rows with at least its columns TRIGGER, ORIGIN and `members`.
        branches: Of a union what `side` is in each of its branches, in their order.
    """
    names, ordered = [*TRIGGER, *ORIGIN], rows
    if len(branches) > 1:
        places = pc.index_in(rows["side"], pa.array(branches, rows["side"].type))
        ordered = rows.append_column("$branch", places)
        names.insert(len(TRIGGER), "$branch")
    last: list[str] = []
    if "value" in rows.column_names and rows["value"].null_count < rows.num_rows:
        ordered = ordered.append_column("$comes", pc.not_equal(rows["kind"], TAKEN).cast(pa.int8()))
        ordered = ordered.append_column("$row", pc.rank(rows["value"], tiebreaker="dense"))
        last = ["$comes", "$row"]
    if not has_members(rows):
        return pick(rows, pa.array(order_of(ordered, [*names, *last])))
    numbered = ordered.select([*names, "members", *last])
    numbered = numbered.append_column("$n", pa.array(np.arange(rows.num_rows)))
    by = ", ".join(map(identifier, numbered.column_names))
    return rows.take(query(f'SELECT "$n" AS n FROM rows ORDER BY {by}', rows=numbered)["n"])


def causes_of(rows: pa.Table) -> Places:
    """Return a number for what made each row, equal ones for one cause.

    That is a record, which may make several rows; of what fell due, the row.

    Args:
        rows: Schema EXCHANGE, in their order.
    """
    count = rows.num_rows
    differs = np.zeros(count, np.bool_)
    for name in TRIGGER:
        differs[1:] |= _steps(rows[name].to_numpy())
    due = np.equal(rows["t_phase"].to_numpy(), 0)
    if due.any():
        for name in ORIGIN:
            differs[1:] |= _steps(rows[name].to_numpy()) & due[1:]
        members = rows["members"].to_pylist()
        for place in np.flatnonzero(due)[1:].tolist():
            differs[place] |= (members[place] or []) != (members[place - 1] or [])
    return np.cumsum(differs, dtype=np.int64)


def _steps(numbers: Places) -> Any:
    return numbers[1:] != numbers[:-1]


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """Return of each `key` the row that was triggered last, in no particular order."""
    keys = rows["key"].combine_chunks().dictionary_encode()
    order = order_of(rows, TRIGGER)
    last = np.empty(len(keys.dictionary), np.int64)
    last[keys.indices.to_numpy()[order]] = order  # of duplicates numpy keeps the last write
    return rows.take(pa.array(last))


def has_members(rows: pa.Table) -> bool:
    """Return whether any row has met a record of an event side."""
    return bool(pc.max(pc.list_value_length(rows["members"])).as_py())


def with_members(rows: pa.Table, more: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return rows with lists of integers behind their `members`, which order those of one record.

    Args:
        rows: With a column `members`.
        more: A list for each.
    """
    members = query(
        "SELECT list_concat(coalesce(members, []::BIGINT[]), more) AS members FROM rows",
        rows=pa.table({"members": rows["members"], "more": more}),
    )
    at = rows.column_names.index("members")
    return rows.set_column(at, pa.field("members", MEMBERS), members["members"].cast(MEMBERS))
