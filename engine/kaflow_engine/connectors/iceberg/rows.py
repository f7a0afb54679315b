"""Rows on their way to the driver: with the types of the table, as an Arrow stream in letters."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.contract import Output, Refused
from kaflow_engine.connectors.faults import anywhere, faulty_rows
from kaflow_engine.connectors.iceberg.types import written_as
from kaflow_engine.connectors.slots import last_of_each_key
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED, KEY
from kaflow_engine.formats.types import List, Map, Scalar, Struct, Type
from kaflow_engine.formats.types import parse_type as read
from kaflow_engine.model.columns import Column

_KEY_TYPE = "VARCHAR"
_WHY = (
    "is, or holds, a time without end, or a list or map of structs that is NULL, which the library "
    "would write as an empty one"
)


def columns_of(output: Output) -> tuple[Column, ...]:
    """Return all columns that are written: those of the rows, and a key that is none of them."""
    own, key = output.columns, output.key
    if key is None or any(column.name == key for column in own):
        return own
    return (*own, Column(key, _KEY_TYPE))


def schema_of(output: Output) -> pa.Schema:
    """Return the columns of a table that is created."""
    listed = ", ".join(
        f"CAST(NULL AS {written_as(column.type)}) AS {identifier(column.name)}"
        for column in columns_of(output)
    )
    return _with_uuids(output, query(f"SELECT {listed}")).schema


def parted(output: Output, rows: pa.Table) -> tuple[pa.Table, list[Refused]]:
    """Return rows as the driver takes them, and those that no table can keep.

    Args:
        output: Which one.
        rows: Its columns, with those of `flow.records`; of one key the last row counts.
    """
    columns = columns_of(output)
    if columns != output.columns:
        rows = rows.append_column(columns[-1].name, rows[KEY])
    refused = _unkept(output, rows)
    good = np.ones(rows.num_rows, np.bool_)
    good[[one.row for one in refused]] = False
    places = np.flatnonzero(good)
    if output.changes:
        places = last_of_each_key(rows, places)
    listed = ", ".join(
        f"CAST({_value(output, column)} AS {written_as(column.type)}) AS {identifier(column.name)}"
        for column in columns
    )
    kept = query(f"SELECT {listed}, {identifier(DELETED)} FROM rows", rows.take(pa.array(places)))
    return kept, refused


def _value(output: Output, column: Column) -> str:
    """Return SQL for the value of a column; of a row that goes nothing but its key is known."""
    own = identifier(column.name)
    if not output.changes or column.name != output.key:
        return own
    kept, gone = (f"CAST({each} AS {column.type})" for each in (own, identifier(KEY)))
    return f"CASE WHEN {identifier(DELETED)} THEN {gone} ELSE {kept} END"


def _unkept(output: Output, rows: pa.Table) -> list[Refused]:
    faults: list[tuple[str, str]] = []
    for column in columns_of(output):
        own, about = identifier(column.name), f"column '{column.name}'"
        if output.changes and column.name == output.key:
            faults.append((f"{own} IS NULL", f"{about} is the key, and NULL"))
        if found := anywhere(_fault, own, read(column.type)):
            faults.append((found, f"{about} {_WHY}"))
    return [Refused(place, "ValueNotKept", why) for place, why in faulty_rows(rows, faults)]


def _fault(sql: str, kind: Type) -> str | None:
    if isinstance(kind, Scalar) and kind.name.startswith(("DATE", "TIMESTAMP")):
        return f"isinf({sql})"
    inside = kind.element if isinstance(kind, List) else None
    inside = kind.value if isinstance(kind, Map) else inside
    return f"{sql} IS NULL" if isinstance(inside, Struct) else None


def packed(rows: pa.Table) -> str:
    """Return rows as a text that a note may hold."""
    buffer = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(buffer, rows.schema, options=options) as stream:
        stream.write_table(rows)
    return base64.b64encode(buffer.getvalue()).decode()


def unpacked(output: Output, texts: Sequence[str]) -> pa.Table | None:
    """Return the rows of all tasks; None: there are none."""
    found = [pa.ipc.open_stream(base64.b64decode(text)).read_all() for text in texts]
    return _with_uuids(output, pa.concat_tables(found)) if found else None


def _with_uuids(output: Output, rows: pa.Table) -> pa.Table:
    """Make columns of UUIDs of those that DuckDB gives as texts."""
    for column in columns_of(output):
        if column.type == "UUID":
            place = rows.schema.get_field_index(column.name)
            texts = rows[column.name].to_pylist()
            values = [None if text is None else UUID(text).bytes for text in texts]
            array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))
            rows = rows.set_column(place, column.name, array)
    return rows


def notes_of(notes: Sequence[Mapping[str, Any]], kind: str, name: str) -> list[Any]:
    """Return what tasks noted for an output."""
    return [note[kind][name] for note in notes if name in note.get(kind, {})]
