"""Rows in the order of section 1 of the semantics, without a query where integers decide."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.formats.pick import pick
from kaflow_engine.operators.rows.schemas import MEMBERS, ORIGIN, TAKEN, TRIGGER

_ROOM = 1 << 62
"""How many numbers a sort key may be one of."""

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def order_of(rows: pa.Table, names: Sequence[str]) -> Places:
    """Return the places of rows in ascending order of columns, the first one foremost.

    Args:
        rows: Of which those that are equal stay as they were.
        names: Columns of integers without null, or of lists of integers.
    """
    columns = [column for name in names for column in _numbers(rows[name])]
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


def _numbers(column: pa.ChunkedArray) -> list[Places]:
    """Return columns of integers that stand in the order of a column; of lists as DuckDB has it:
    null last, and a list before those that it begins."""
    if not pa.types.is_list(column.type):
        return [column.to_numpy()]
    lists = column.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), -1).to_numpy()
    offsets, values = lists.offsets.to_numpy(), lists.values
    found = [(lengths < 0).astype(np.int64)]
    for place in range(lengths.max(initial=0)):
        longer = np.flatnonzero(lengths > place)
        some = values.take(pa.array(offsets[longer] + place))
        there, number = np.zeros((2, len(lists)), np.int64)
        there[longer] = pc.if_else(some.is_valid(), 1, 2).to_numpy()
        number[longer] = pc.fill_null(some, 0).to_numpy()
        found += [there, number]
    return found


def in_order(rows: pa.Table, branches: Sequence[int] = ()) -> pa.Table:
    """Return rows in the order in which they count; equal ones as they were.

    Of what one record changed in a table, rows that are taken away come first, and then the others
    in the order of their identities: several tasks may have sent them.

    Args:
        rows: Schema EXCHANGE, or rows with at least its columns TRIGGER, ORIGIN and `members`.
        branches: Of a union what `side` is in each of its branches, in their order.
    """
    names, ordered = [*TRIGGER, *ORIGIN, "members"], rows
    if len(branches) > 1:
        places = pc.index_in(rows["side"], pa.array(branches, rows["side"].type))
        ordered = rows.append_column("$branch", places)
        names.insert(len(TRIGGER), "$branch")
    last: list[str] = []
    if "value" in rows.column_names and rows["value"].null_count < rows.num_rows:
        ordered = ordered.append_column("$comes", pc.not_equal(rows["kind"], TAKEN).cast(pa.int8()))
        ordered = ordered.append_column("$row", pc.rank(rows["value"], tiebreaker="dense"))
        last = ["$comes", "$row"]
    return pick(rows, pa.array(order_of(ordered, [*names, *last])))


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
