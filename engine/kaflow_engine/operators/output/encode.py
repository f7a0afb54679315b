"""Rows as the records of a sink: key and value in its format."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.flow.sinks import (
    OPERATION,
    OPERATIONS,
    TOMBSTONE,
    ConnectorSink,
    Sink,
    TableSink,
    TopicSink,
    value_columns,
)
from kaflow_engine.formats.avro.keys import encode_keys
from kaflow_engine.formats.contract import Encoder, IdSchema, format_of
from kaflow_engine.formats.headers import entry_text, headers_sql, with_entry_sql
from kaflow_engine.formats.keys import key_bytes_sql
from kaflow_engine.formats.pick import at_places, keep
from kaflow_engine.model.columns import Column
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.layout import selected
from kaflow_engine.operators.rows.row_text import pack, to_text
from kaflow_engine.operators.rows.table_rows import LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """What became of rows; those in neither part were filtered."""

    rows: pa.Table
    """rn int64, out_key binary, value binary, headers as text (see `formats.headers`), and the
    column of places, where there is one."""
    bad: tuple[BadRecord, ...]


def encode_rows(
    sink: Sink, columns: Sequence[Column], sql: str, rows: pa.Table, places: str | None = None
) -> Encoded:
    """Run a projection and encode what it selects, in one query.

    A row of `rows` of which one row fails makes none.

    Args:
        sink: What the rows are for.
        columns: What is selected.
        sql: SELECT of `rn` and the columns, named by `selected`, from `rows`.
        rows: What `sql` reads.
        places: A column that `sql` selects, too: with `rn`, it tells rows of one `rn` apart.
    """
    numbers = ["rn", *([places] if places else [])]
    beside = {"$key": _key_sql(sink, columns), "$headers": _headers_sql(sink, columns)}
    changes = any(column.name == OPERATION for column in columns)
    gone = _without_value(sink)
    key_type = next((column.type for column in columns if column.name == sink.key), None)
    columns = value_columns(sink, columns)
    value, encoder = _value(sink, columns)
    if changes and value is not None:
        value = f"CASE WHEN {identifier(f'o.{OPERATION}')} <> '{gone}' THEN {value} END"
    made = {**beside, **({} if value is None else {"$value": value})}
    chosen = ["*"] if value is None else [*map(identifier, numbers)]
    chosen += [f"{part} AS {identifier(name)}" for name, part in made.items()]
    found, failed = guarded(f"SELECT {', '.join(chosen)} FROM ({sql})", rows)
    found, unkeyed = _with_key_bytes(sink, found, key_type)
    bad = [*bad_records(failed), *unkeyed]
    if encoder is not None:
        kept = [*numbers, *beside]
        deletes = _deletes(found, kept, gone) if changes else None
        found = found if deletes is None else keep(found, pc.invert(_is_delete(found, gone)))
        found, unencoded = _encoded(encoder, columns, found, kept)
        bad += unencoded
        if deletes is not None:
            both = pa.concat_tables([found, deletes.cast(found.schema)])
            found = both.take(pc.sort_indices(both["rn"]))
    keys = found.column("$key")
    if _needs_key(sink) and keys.null_count:
        bad += [
            BadRecord(
                row=row,
                phase="encode",
                error="NullKey",
                message=f"the key column '{sink.key}' is null",
            )
            for row in found.filter(keys.is_null()).column("rn").to_pylist()
        ]
    whole = {b.row: b for b in reversed(bad)}
    if whole:
        failing = pc.is_in(found["rn"], pa.array(list(whole), found["rn"].type))
        found = found.filter(pc.invert(failing))
    done = pa.table(
        {
            **{name: found.column(name) for name in numbers},
            "rn": found.column("rn").cast(pa.int64()),
            "out_key": found.column("$key").cast(pa.binary()),
            "value": found.column("$value").cast(pa.binary()),
            "headers": found.column("$headers").cast(pa.string()),
        }
    )
    return Encoded(rows=done, bad=tuple(sorted(whole.values(), key=lambda b: b.row)))


def _key_sql(sink: Sink, columns: Sequence[Column]) -> str:
    """Return a BLOB expression of the key."""
    column = next((column for column in columns if column.name == sink.key), None)
    if column is None:
        return "NULL::BLOB"
    form: KeyFormat = "text"
    if isinstance(sink, TopicSink):
        form = "bytes" if sink.takes_bytes else sink.key_format
    return key_bytes_sql(form, column.type, selected(column))


def _with_key_bytes(
    sink: Sink, found: pa.Table, kind: str | None
) -> tuple[pa.Table, list[BadRecord]]:
    """Return rows with the bytes of keys that no SQL writes."""
    schema = sink.key_schema if isinstance(sink, TopicSink) else None
    if not isinstance(sink, TopicSink) or schema is None or kind is None:
        return found, []
    assert sink.key_schema_id is not None
    keys = found.column("$key").combine_chunks()
    places = pc.indices_nonzero(keys.is_valid())
    encoded = encode_keys(keys.take(places), kind, IdSchema(sink.key_schema_id, schema))
    written = at_places(encoded.array, places, len(keys))
    numbers = found.column("rn")
    bad = [
        BadRecord(
            row=numbers[places[b.row].as_py()].as_py(),
            phase="encode",
            error=b.error,
            message=f"the key: {b.message}",
        )
        for b in encoded.bad
    ]
    return found.set_column(found.column_names.index("$key"), "$key", written), bad


def _headers_sql(sink: Sink, columns: Sequence[Column]) -> str:
    """Return an expression of the headers as text."""
    named = sink.headers if isinstance(sink, TopicSink) else None
    column = next((column for column in columns if column.name == named), None)
    apart = sink.operation if isinstance(sink, TopicSink) else None
    sql = "NULL::VARCHAR" if column is None else headers_sql(column.type, selected(column), apart)
    if apart is None or all(column.name != OPERATION for column in columns):
        return sql  # of changes of tables it is known behind the query
    operation = identifier(f"o.{OPERATION}")
    return with_entry_sql(f"CASE {operation} {_cases(apart)} END", sql)


def _cases(header: str) -> str:
    pairs = OPERATIONS.items()
    return " ".join(f"WHEN '{op}' THEN {literal(entry_text(header, v))}" for op, v in pairs)


def _without_value(sink: Sink) -> str:
    """Return the operation of changes that are written without a value."""
    keeps = isinstance(sink, TopicSink) and sink.operation is not None
    return TOMBSTONE if keeps else "d"


def _is_delete(found: pa.Table, operation: str) -> pa.ChunkedArray:
    return pc.equal(found[f"o.{OPERATION}"], operation)


def _deletes(found: pa.Table, kept: Sequence[str], operation: str) -> pa.Table:
    """Return the rows that delete: without a value."""
    gone = keep(found, _is_delete(found, operation)).select(kept)
    return gone.append_column("$value", pa.nulls(gone.num_rows, pa.binary()))


def _value(sink: Sink, columns: Sequence[Column]) -> tuple[str | None, Encoder | None]:
    """Return the SQL of the value, or what encodes the rows after the query."""
    match sink:
        case TableSink(table=table):  # a JSON list with the text of each column
            pairs = zip(columns, table.columns, strict=True)
            return f"encode({pack(to_text(*_fitting(c, kept)) for c, kept in pairs)})", None
        case ConnectorSink():
            return f"encode({pack(to_text(selected(c), c.type) for c in columns)})", None
        case TopicSink():
            encoder = _encoder(sink, tuple(columns))
            sql = encoder.sql({column.name: selected(column) for column in columns})
            return sql, encoder if sql is None else None
        case _:
            assert_never(sink)


def _fitting(column: Column, kept: Column) -> tuple[str, str]:
    """Return a column, and its type, so that what the table cannot keep fails in the query."""
    if column.type in LARGE:
        return f"CAST({selected(column)} AS {kept.type})", kept.type
    return selected(column), column.type


@lru_cache(maxsize=64)
def _encoder(sink: TopicSink, columns: tuple[Column, ...]) -> Encoder:
    schema = None
    if sink.avro_schema is not None and sink.avro_id is not None:
        schema = IdSchema(sink.avro_id, sink.avro_schema)
    return format_of(sink.format).encoder(columns, schema)


def _encoded(
    encoder: Encoder, columns: Sequence[Column], found: pa.Table, kept: Sequence[str]
) -> tuple[pa.Table, list[BadRecord]]:
    names = [column.name for column in columns]
    encoded = encoder.encode(found.select([f"o.{name}" for name in names]).rename_columns(names))
    numbers = found.column("rn").to_pylist()
    bad = [
        BadRecord(row=numbers[b.row], phase="encode", error=b.error, message=b.message)
        for b in encoded.bad
    ]
    table = found.select(kept).append_column("$value", encoded.array)
    return table.filter(pc.is_valid(table.column("$value"))), bad


def _needs_key(sink: Sink) -> bool:
    """Tell whether a row without a key is a bad one."""
    match sink:
        case TopicSink(key=key, passes_key=passes):
            return key is not None and not passes
        case TableSink(key=key) | ConnectorSink(key=key):
            return key is not None
        case _:
            assert_never(sink)
