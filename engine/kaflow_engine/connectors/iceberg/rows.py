"""Rows on their way to a table: with its types, and without those that it cannot keep."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from kaflow_engine.connectors.contract import Output, Refused
from kaflow_engine.connectors.iceberg.types import written_as
from kaflow_engine.connectors.rows_in_notes import rows_of_notes
from kaflow_engine.connectors.tables.columns import (
    key_column,
    key_sql,
    with_key,
    written_columns,
)
from kaflow_engine.connectors.tables.faults import anywhere, sound_rows
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED
from kaflow_engine.formats.types import List, Map, Scalar, Struct, Type
from kaflow_engine.formats.types import parse_type as read
from kaflow_engine.model.columns import Column

_WHY = (
    "is, or holds, a time without end, or a list or map of structs that is NULL, which the library "
    "would write as an empty one"
)


def schema_of(output: Output) -> pa.Schema:
    """Return the columns of a table that is created."""
    listed = ", ".join(
        f"CAST(NULL AS {written_as(column.type)}) AS {identifier(column.name)}"
        for column in written_columns(output)
    )
    return _with_uuids(output, query(f"SELECT {listed}")).schema


def parted(output: Output, rows: pa.Table) -> tuple[pa.Table, list[Refused]]:
    """Return rows as the driver takes them, and those that no table can keep.

    Args:
        output: Which one.
        rows: Its columns, with those of `flow.records`; of one key the last row counts.
    """
    rows, columns, key = with_key(output, rows), written_columns(output), key_column(output)
    places, refused = sound_rows(output, rows, [*_faults(columns)])
    values = (
        key_sql(output, column) if column == key else identifier(column.name) for column in columns
    )
    listed = ", ".join(
        f"CAST({value} AS {written_as(column.type)}) AS {identifier(column.name)}"
        for column, value in zip(columns, values, strict=True)
    )
    kept = query(f"SELECT {listed}, {identifier(DELETED)} FROM rows", rows.take(pa.array(places)))
    return kept, refused


def _faults(columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    for column in columns:
        if found := anywhere(_fault, identifier(column.name), read(column.type)):
            yield found, f"column '{column.name}' {_WHY}"


def _fault(sql: str, kind: Type) -> str | None:
    if isinstance(kind, Scalar) and kind.name.startswith(("DATE", "TIMESTAMP")):
        return f"isinf({sql})"
    inside = kind.element if isinstance(kind, List) else None
    inside = kind.value if isinstance(kind, Map) else inside
    return f"{sql} IS NULL" if isinstance(inside, Struct) else None


def handed_over(output: Output, notes: Sequence[Mapping[str, Any]]) -> pa.Table | None:
    """Return the rows that all tasks handed over; None: there are none."""
    rows = rows_of_notes(output, notes)
    return None if rows is None else _with_uuids(output, rows)


def _with_uuids(output: Output, rows: pa.Table) -> pa.Table:
    """Make columns of UUIDs of those that DuckDB gives as texts."""
    for column in written_columns(output):
        if column.type == "UUID":
            place = rows.schema.get_field_index(column.name)
            texts = rows[column.name].to_pylist()
            values = [None if text is None else UUID(text).bytes for text in texts]
            array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))
            rows = rows.set_column(place, column.name, array)
    return rows
