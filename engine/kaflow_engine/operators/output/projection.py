"""Finished rows to output records: the rest of WHERE, the select list, key and value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.plan import FinishParams
from kaflow_engine.formats.contract import Encoder, IdSchema, format_of
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.rows.row_text import pack, to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What became of rows; those in neither part were filtered."""

    rows: pa.Table
    """rn int64, out_key binary, value binary."""
    bad: tuple[BadRecord, ...]


def finish_rows(finish: FinishParams, typed: str, rows: pa.Table) -> Finished:
    """Apply the rest of WHERE, compute the outputs, and encode them.

    Args:
        finish: What the author selected.
        typed: SELECT of `rn` and the columns `alias.column` from `rows`.
        rows: What `typed` reads.
    """
    names = {column.name: identifier(f"o.{column.name}") for column, _ in finish.outputs}
    key = "NULL" if finish.key is None else f"CAST({names[finish.key]} AS VARCHAR)"
    chosen = ", ".join(
        ["rn", *(f"{sql} AS {names[column.name]}" for column, sql in finish.outputs)]
    )
    where = f" WHERE {finish.where}" if finish.where else ""
    selected = f"SELECT {chosen} FROM ({typed}){where}"
    value, encoder = _value(finish, names)
    if value is not None:
        sql = f'SELECT rn, {key} AS "$key", {value} AS "$value" FROM ({selected})'
    else:
        sql = f'SELECT *, {key} AS "$key" FROM ({selected})'
    found, failed = guarded(sql, rows)
    bad = [BadRecord(row=b.row, phase="sql", error=b.error, message=b.message) for b in failed]
    if encoder is not None:
        found, unencoded = _encoded(encoder, [column.name for column, _ in finish.outputs], found)
        bad += unencoded
    keys = found.column("$key")
    if finish.key is not None and keys.null_count:
        bad += [
            BadRecord(
                row=row,
                phase="encode",
                error="NullKey",
                message=f"the key column '{finish.key}' is null",
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
    return Finished(rows=done, bad=tuple(bad))


def _encoded(
    encoder: Encoder, names: Sequence[str], found: pa.Table
) -> tuple[pa.Table, list[BadRecord]]:
    encoded = encoder.encode(found.select([f"o.{name}" for name in names]).rename_columns(names))
    numbers = found.column("rn").to_pylist()
    bad = [
        BadRecord(row=numbers[b.row], phase="encode", error=b.error, message=b.message)
        for b in encoded.bad
    ]
    table = found.select(["rn", "$key"]).append_column("$value", encoded.array)
    return table.filter(pc.is_valid(table.column("$value"))), bad


def _value(finish: FinishParams, names: Mapping[str, str]) -> tuple[str | None, Encoder | None]:
    """Return the SQL of the value, or what encodes the rows after the query."""
    columns = [column for column, _ in finish.outputs]
    if finish.format == "texts":
        return f"encode({pack(to_text(names[c.name], c.type) for c in columns)})", None
    schema = None
    if finish.avro_schema is not None and finish.avro_id is not None:
        schema = IdSchema(finish.avro_id, finish.avro_schema)
    encoder = format_of(finish.format).encoder(columns, schema)
    sql = encoder.sql(names)
    return sql, encoder if sql is None else None
