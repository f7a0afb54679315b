"""Entries of tables and of their joins: the rows that they keep."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.inspect.entry_columns import Decoded, decoded, entry_rows, key_texts
from kaflow_engine.operators.table.kept_rows import read_rows
from kaflow_engine.operators.table.side_rows import ALONE, side_row
from kaflow_engine.state.keys import split_entry


def decode_table(table: Materialize, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode rows of a table, by its key."""
    ts, packed = read_rows(pa.array(values, pa.binary()))
    due = [None if table.retain is None else at + table.retain for at in ts.tolist()]
    rows = entry_rows(key_texts(keys), [None] * len(keys), pa.array(ts), due, packed=packed)
    return decoded(rows, [("packed", table.columns)])


def decode_side(
    join: TableJoin, byte: int, keys: Sequence[bytes], values: Sequence[bytes]
) -> Decoded:
    """Decode rows of one side of a join, by their join key; `row` is the key of the row."""
    found = [side_row(value) for value in values]
    alone = byte >= ALONE
    names = [split_entry(key)[2][1:].decode() for key in keys]
    rows = entry_rows(
        [None] * len(keys) if alone else key_texts(keys),
        [None] * len(keys),
        [row.ts for row in found],
        [None] * len(keys),
        packed=pa.array([row.packed for row in found], pa.string()),
        name=pa.array(names, pa.string()),
    )
    columns = join.sides[byte % ALONE].columns
    return decoded(rows, [("packed", columns)], [(Column("row", "VARCHAR"), "name")])
