"""Decode Avro records with Confluent framing into columns.

A value is a zero byte, the schema's id as four bytes, big-endian, and the record. Columns
are found by name; one that the writer's schema does not have is NULL, one of another type is cast
as SQL does. A time or date asked for as a whole number is the number that was written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck import queries
from kaflow_engine.errors import ModelError
from kaflow_engine.formats.avro.decode_one import read_record
from kaflow_engine.formats.avro.read import Bools, BulkReader, Longs
from kaflow_engine.formats.avro.schema import declared, record_of
from kaflow_engine.formats.avro.types import Avro, is_regular, stored
from kaflow_engine.formats.decoded import BadValue, Decoded, Unreadable, gathered, schema_of, shown
from kaflow_engine.formats.schema_registry import UnknownSchema
from kaflow_engine.formats.types import (
    INTEGERS,
    Scalar,
    arrow_type,
    parse_type,
    type_text,
    without_uuid,
)
from kaflow_engine.model.columns import Column

HEADER = 5


@dataclass(frozen=True, slots=True)
class _Batch:
    values: pa.Array
    start: Longs
    end: Longs

    def payload(self, row: int) -> bytes:
        return self.values[row].as_py()[HEADER:]


@dataclass(frozen=True, slots=True)
class _Part:
    table: pa.Table
    rows: Longs
    bad: list[BadValue]


def decode_avro(
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[Column],
    schema_by_id: Callable[[int], str],
) -> Decoded:
    """Decode `values` (binary, none null) into `columns`.

    `schema_by_id` raises UnknownSchema for an id that does not exist: its values are bad. Other
    errors, such as a registry that does not answer, pass through.
    """
    batch = _batch(values)
    data = np.frombuffer(batch.values.buffers()[2] or b"", np.uint8)
    size = batch.end - batch.start
    bad: list[BadValue] = []
    for row in np.flatnonzero(size < HEADER):
        bad.append(BadValue(int(row), "NotFramed", f"only {size[row]} bytes, the header has 5"))
    rows = np.flatnonzero(size >= HEADER)
    magic = data[batch.start[rows]] if len(rows) else np.empty(0, np.uint8)
    for row, byte in zip(rows[magic != 0], magic[magic != 0], strict=True):
        bad.append(BadValue(int(row), "NotFramed", f"starts with byte {byte:#04x} instead of 0x00"))
    rows = rows[magic == 0]
    head = data[batch.start[rows][:, None] + np.arange(1, HEADER)]
    ids = np.ascontiguousarray(head).view(">i4").ravel() if len(rows) else np.empty(0, np.int32)
    parts: list[_Part] = []
    for schema_id in np.unique(ids):
        of_id = rows[ids == schema_id]
        try:
            schema = schema_by_id(int(schema_id))
            part = _decode(batch, of_id, schema, columns)
        except (UnknownSchema, ModelError) as error:
            text = str(error) if isinstance(error, ModelError) else "is not in the registry"
            why = f"schema {schema_id}: {text}"
            bad += [BadValue(int(row), "UnknownSchema", why) for row in of_id]
            continue
        parts.append(part)
        bad += part.bad
    return gathered(
        [part.table for part in parts],
        [pa.array(part.rows, pa.int64()) for part in parts],
        bad,
        schema_of(columns),
    )


def _batch(values: pa.Array | pa.ChunkedArray) -> _Batch:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    array = array.cast(pa.binary())
    offsets = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return _Batch(array, offsets[:-1], offsets[1:])


def _decode(batch: _Batch, rows: Longs, schema: str, columns: Sequence[Column]) -> _Part:
    record = record_of(schema)
    written = {field.name: field.type for field in record.fields}
    asked = {c.name: _as_read(c, written[c.name]) for c in columns if c.name in written}
    slow = rows
    tables: list[pa.Table] = []
    order: list[Longs] = []
    if is_regular(record):
        start = batch.start[rows] + HEADER
        reader = BulkReader(batch.values.buffers()[2], start, batch.end[rows])
        plain = {name: kind != written[name] for name, kind in asked.items()}
        found = reader.read(record, plain)
        tables.append(_table(found, reader.ok))
        order.append(rows[reader.ok])
        slow = rows[~reader.ok]
    bad: list[BadValue] = []
    if len(slow):
        table, good = _one_by_one(batch, slow, schema, asked, bad)
        tables.append(table)
        order.append(good)
    everything = pa.concat_tables(tables)
    return _cast(everything, np.concatenate(order), asked, columns, bad)


def _as_read(column: Column, kind: Avro) -> Avro:
    wanted = parse_type(column.type)
    whole = isinstance(wanted, Scalar) and wanted.name in INTEGERS
    return stored(kind) if whole else kind


def _table(found: Mapping[str, pa.Array], ok: Bools) -> pa.Table:
    table = pa.table([*found.values(), pa.array(ok)], [*found, ""])
    return table if ok.all() else table.filter(pa.array(ok))


def _one_by_one(
    batch: _Batch, rows: Longs, schema: str, asked: Mapping[str, Avro], bad: list[BadValue]
) -> tuple[pa.Table, Longs]:
    good: list[int] = []
    found: list[dict[str, object]] = []
    for row in rows.tolist():
        try:
            found.append(read_record(batch.payload(row), schema, asked))
            good.append(row)
        except Unreadable as error:
            bad.append(error.at(row))
    arrays = [
        pa.array([one[name] for one in found], _carried(kind)) for name, kind in asked.items()
    ]
    flags = pa.array([True] * len(good), pa.bool_())
    return pa.table([*arrays, flags], [*asked, ""]), np.array(good, np.int64)


def _cast(
    table: pa.Table,
    rows: Longs,
    asked: Mapping[str, Avro],
    columns: Sequence[Column],
    bad: list[BadValue],
) -> _Part:
    good = np.ones(len(rows), np.bool_)
    arrays: list[pa.Array] = []
    for column in columns:
        wanted = type_text(parse_type(column.type))
        if column.name not in asked:
            arrays.append(pa.nulls(len(rows), arrow_type(wanted)))
            continue
        array = table.column(column.name).combine_chunks()
        if wanted != _carried_text(asked[column.name]):
            array, fits = _try_cast(array, wanted)
            for at in np.flatnonzero(~fits & good):
                value = shown(str(table.column(column.name)[int(at)].as_py()))
                why = f"column '{column.name}': {value} is not a {wanted}"
                bad.append(BadValue(int(rows[at]), "WrongType", why))
            good &= fits
        arrays.append(array)
    names = [f"c{index}" for index in range(len(columns))]
    cast = pa.table([*arrays, pa.array(good)], [*names, ""])
    return _Part(cast if good.all() else cast.filter(pa.array(good)), rows[good], bad)


def _try_cast(array: pa.Array, wanted: str) -> tuple[pa.Array, Bools]:
    sql = f"SELECT TRY_CAST(c AS {wanted}) AS c FROM rows"
    try:
        found = queries.query(sql, rows=pa.table({"c": array})).column("c").combine_chunks()
    except (duckdb.BinderException, duckdb.ConversionException):  # no cast between these types
        found = pa.nulls(len(array), arrow_type(wanted))
    return found, np.asarray(pc.or_(found.is_valid(), array.is_null()))


def _carried(kind: Avro) -> pa.DataType:
    return arrow_type(_carried_text(kind))


def _carried_text(kind: Avro) -> str:
    return type_text(without_uuid(declared(kind)))
