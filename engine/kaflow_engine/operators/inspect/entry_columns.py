"""Entries of a state with the columns that they stand for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.json.encode import json_object_sql
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.layout import GONE
from kaflow_engine.operators.rows.row_text import from_text, unpack
from kaflow_engine.state.keys import split_entry

FIXED = (
    Column("key", "VARCHAR"),
    Column("record", "VARCHAR"),
    Column("ts", "BIGINT"),
    Column("due", "BIGINT"),
)
"""Join key; topic[partition]@offset of the source record; event time and when it expires, in epoch
milliseconds."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Entries of one side, and the SQL that reads `rows` and gives their columns."""

    rows: pa.Table
    columns: tuple[Column, ...]
    sql: str
    """SELECT of FIXED and `columns`."""

    def table(self) -> pa.Table:
        """Return FIXED and one column a value."""
        return query(self.sql, rows=self.rows)

    def json_rows(self) -> list[dict[str, Any]]:
        """Return FIXED and `value`, a mapping of all values as JSON has them."""
        value = json_object_sql([(column, identifier(column.name)) for column in self.columns])
        names = ", ".join(column.name for column in FIXED)
        found = query(f"SELECT {names}, {value} AS value FROM ({self.sql})", rows=self.rows)
        return [
            {**row, "value": json.loads(row["value"], parse_float=_number)}
            for row in found.to_pylist()
        ]


def decoded(
    rows: pa.Table,
    packed: Sequence[tuple[str, Sequence[Column]]],
    more: Sequence[tuple[Column, str]] = (),
) -> Decoded:
    """Return entries with the columns of packed rows, and others by their SQL.

    Args:
        rows: As `entry_rows` makes them.
        packed: Columns of `rows` that hold packed rows, and what stands in them.
        more: Further columns.
    """
    lists = [f"{unpack(name)} AS l_{name}" for name, _ in packed]
    values = [
        (column, from_text(f"l_{name}[{place}]", column.type))
        for name, columns in packed
        for place, column in enumerate(columns, 1)
        if GONE not in column.name
    ]
    chosen = [*more, *values]
    fixed = [column.name for column in FIXED]
    sql = ", ".join([*fixed, *(f"{value} AS {identifier(c.name)}" for c, value in chosen)])
    inner = ", ".join(["*", *lists])
    return Decoded(
        rows, tuple(c for c, _ in chosen), f"SELECT {sql} FROM (SELECT {inner} FROM rows)"
    )


def _number(text: str) -> float | str:
    """Return a number of JSON, or its text where a float would change it."""
    found = float(text)
    return found if Decimal(repr(found)) == Decimal(text) else text


def entry_rows(keys: Any, records: Any, stamps: Any, dues: Any, **more: Any) -> pa.Table:
    """Return FIXED of entries, and further columns."""
    return pa.table(
        {
            "key": pa.array(keys, pa.string()),
            "record": pa.array(records, pa.string()),
            "ts": _numbers(stamps),
            "due": _numbers(dues),
            **more,
        }
    )


def _numbers(found: Any) -> Any:
    if isinstance(found, pa.Array | pa.ChunkedArray):
        return found
    return pa.array(found, pa.int64())


def key_texts(keys: Sequence[bytes]) -> list[str | None]:
    """Return the join keys, or the grouping values, of entries."""
    return [split_entry(key)[0][1:].decode(errors="replace") for key in keys]
