"""Rows as the records of a sink: key and value in its format."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.sinks import Sink, TableSink, TopicSink
from kaflow_engine.formats.avro.encode import AvroEncoder
from kaflow_engine.formats.json.encode import json_object_sql
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.rows.row_text import pack, to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """What became of rows; those in neither part were filtered."""

    rows: pa.Table
    """rn int64, out_key binary, value binary."""
    bad: tuple[BadRecord, ...]


def selected(column: Column) -> str:
    """Return how a projection names one of its columns, quoted."""
    return identifier(f"o.{column.name}")


def encode_rows(sink: Sink, columns: Sequence[Column], sql: str, rows: pa.Table) -> Encoded:
    """Run a projection and encode what it selects, in one query.

    Args:
        sink: What the rows are for.
        columns: What is selected.
        sql: SELECT of `rn` and the columns, named by `selected`, from `rows`.
        rows: What `sql` reads.
    """
    key = "NULL" if sink.key is None else f"CAST({identifier(f'o.{sink.key}')} AS VARCHAR)"
    value = _value(sink, columns)
    chosen = "*" if value is None else "rn"
    encoded = "" if value is None else f', {value} AS "$value"'
    found, failed = guarded(f'SELECT {chosen}, {key} AS "$key"{encoded} FROM ({sql})', rows)
    bad = [BadRecord(row=b.row, phase="sql", error=b.error, message=b.message) for b in failed]
    if isinstance(sink, TopicSink) and value is None:
        found, unencoded = _avro(sink, columns, found)
        bad += unencoded
    keys = found.column("$key")
    if sink.key is not None and keys.null_count:
        bad += [
            BadRecord(
                row=row,
                phase="encode",
                error="NullKey",
                message=f"the key column '{sink.key}' is null",
            )
            for row in found.filter(keys.is_null()).column("rn").to_pylist()
        ]
        found = found.filter(keys.is_valid())
    done = pa.table(
        {
            "rn": found.column("rn").cast(pa.int64()),
            "out_key": found.column("$key").cast(pa.string()).cast(pa.binary()),
            "value": found.column("$value").cast(pa.binary()),
        }
    )
    return Encoded(rows=done, bad=tuple(bad))


def _value(sink: Sink, columns: Sequence[Column]) -> str | None:
    """Return SQL for the value of a record; None where SQL cannot write it."""
    match sink:
        case TableSink():  # a JSON list with the text of each column
            return f"encode({pack(to_text(selected(c), c.type) for c in columns)})"
        case TopicSink(format=form):
            return json_object_sql([(c, selected(c)) for c in columns]) if form == "json" else None
        case _:
            assert_never(sink)


def _avro(
    sink: TopicSink, columns: Sequence[Column], found: pa.Table
) -> tuple[pa.Table, list[BadRecord]]:
    assert sink.avro_schema is not None
    assert sink.avro_id is not None
    encoder = _encoder(sink.avro_schema, sink.avro_id)
    names = [column.name for column in columns]
    encoded = encoder.encode(found.select([f"o.{name}" for name in names]).rename_columns(names))
    numbers = found.column("rn").to_pylist()
    bad = [
        BadRecord(row=numbers[b.row], phase="encode", error=b.error, message=b.message)
        for b in encoded.bad
    ]
    values = encoded.array
    kept = found.select(["rn", "$key"])
    table = kept.append_column("$value", values)
    return table.filter(pc.is_valid(table.column("$value"))), bad


@lru_cache(maxsize=64)
def _encoder(schema: str, schema_id: int) -> AvroEncoder:
    return AvroEncoder(schema, schema_id)
