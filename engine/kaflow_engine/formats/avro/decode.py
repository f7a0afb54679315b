"""Decode Avro records with Confluent framing into columns.

A value is a zero byte, the schema's id as four bytes, big-endian, and the record. Columns
are found by name; one that the writer's schema does not have is NULL, one of another type is cast
as SQL does. A time or date asked for as a whole number is the number that was written.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.asked import Part, as_asked, gathered_parts
from kaflow_engine.formats.avro.decode_one import read_record
from kaflow_engine.formats.avro.read import Bools, BulkReader, Longs
from kaflow_engine.formats.avro.schema import declared, record_of
from kaflow_engine.formats.avro.types import Avro, is_regular, stored
from kaflow_engine.formats.avro.wide import as_declared
from kaflow_engine.formats.decoded import BadValue, Decoded, Unreadable, array_of
from kaflow_engine.formats.framing import HEADER, Framed, framed, unknown
from kaflow_engine.formats.types import (
    INTEGERS,
    Scalar,
    parse_type,
    type_text,
    without_uuid,
)
from kaflow_engine.model.columns import Column


def decode_avro(
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[Column],
    schema_by_id: Callable[[int], str],
) -> Decoded:
    """Decode `values` (binary, none null) into `columns`.

    `schema_by_id` raises UnknownSchema for an id that does not exist: its values are bad. Other
    errors, such as a registry that does not answer, pass through.
    """
    batch = framed(values)
    bad = list(batch.bad)
    parts: list[Part] = []
    for schema_id, schema, rows in batch.with_schemas(schema_by_id, bad):
        try:
            part = _decode(batch, rows, schema, columns)
        except ModelError as error:
            bad += unknown(schema_id, rows, error)
            continue
        parts.append(part)
        bad += part.bad
    return gathered_parts(parts, bad, columns)


def _decode(batch: Framed, rows: Longs, schema: str, columns: Sequence[Column]) -> Part:
    record = record_of(schema)
    written = {field.name: field.type for field in record.fields}
    asked = {c.name: _as_read(c, written[c.name]) for c in columns if c.name in written}
    slow = rows
    tables: list[pa.Table] = []
    order: list[Longs] = []
    if is_regular(record):
        start = batch.start[rows] + HEADER
        reader = BulkReader(batch.values.buffers()[2], start, batch.end[rows])
        found = reader.read(record, asked)
        tables.append(_table(found, reader.ok))
        order.append(rows[reader.ok])
        slow = rows[~reader.ok]
    bad: list[BadValue] = []
    if len(slow):
        table, good = _one_by_one(batch, slow, schema, asked, bad)
        tables.append(table)
        order.append(good)
    everything = pa.concat_tables(tables)
    carried = {name: _carried_text(kind) for name, kind in asked.items()}
    return as_asked(everything, np.concatenate(order), carried, columns, bad)


def _as_read(column: Column, kind: Avro) -> Avro:
    wanted = parse_type(column.type)
    if not isinstance(wanted, Scalar):
        return kind
    return stored(kind) if wanted.name in INTEGERS else as_declared(kind, wanted.name)


def _table(found: Mapping[str, pa.Array], ok: Bools) -> pa.Table:
    table = pa.table([*found.values(), pa.array(ok)], [*found, ""])
    return table if ok.all() else table.filter(pa.array(ok))


def _one_by_one(
    batch: Framed, rows: Longs, schema: str, asked: Mapping[str, Avro], bad: list[BadValue]
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
        array_of([one[name] for one in found], _carried_text(kind)) for name, kind in asked.items()
    ]
    flags = pa.array([True] * len(good), pa.bool_())
    return pa.table([*arrays, flags], [*asked, ""]), np.array(good, np.int64)


def _carried_text(kind: Avro) -> str:
    return type_text(without_uuid(declared(kind)))
