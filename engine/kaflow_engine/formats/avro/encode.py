"""Encode rows as Avro records with Confluent framing."""

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

import fastavro
import fastavro.validation
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.wide.vectors import is_column, numbers_in
from kaflow_engine.formats.avro.pieces import CannotWrite
from kaflow_engine.formats.avro.schema import record_of
from kaflow_engine.formats.avro.types import Array, Avro, MapOf, Primitive, Record, nullable
from kaflow_engine.formats.avro.write import BulkWriter
from kaflow_engine.formats.decoded import BadValue, Encoded, shown
from kaflow_engine.formats.framing import header


class AvroEncoder:
    """Writes tables as values of one registered record schema; columns are found by name."""

    def __init__(self, schema: str, schema_id: int) -> None:
        self._record = record_of(schema)
        self._parsed = fastavro.parse_schema(json.loads(schema))
        self._header = header(schema_id)

    def encode(self, table: pa.Table) -> Encoded:
        """Encode every row; a row that the schema cannot hold is bad, the others are not."""
        if table.num_rows == 0:
            return Encoded(pa.array([], pa.binary()), ())
        writer = BulkWriter()
        try:
            array = writer.write(self._record, table, self._header)
        except (CannotWrite, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return self._one_by_one(table)
        if not writer.wrong:
            return Encoded(array, ())
        bad = [BadValue(row, "CannotEncode", why) for row, why in sorted(writer.wrong.items())]
        good = pa.array([row not in writer.wrong for row in range(len(array))])
        return Encoded(pc.if_else(good, array, None), tuple(bad))

    def _one_by_one(self, table: pa.Table) -> Encoded:
        values: list[bytes | None] = []
        bad: list[BadValue] = []
        for row, found in enumerate(_rows(table)):
            try:
                values.append(self._encode_row(found))
            except Exception as error:  # fastavro promises no set of errors
                values.append(None)
                why = " ".join(str(error).split())
                bad.append(BadValue(row, "CannotEncode", shown(why, 300)))
        return Encoded(pa.array(values, pa.binary()), tuple(bad))

    def _encode_row(self, row: Mapping[str, Any]) -> bytes:
        record = _python(self._record, row)
        fastavro.validation.validate(record, self._parsed, raise_errors=True)
        stream = io.BytesIO()
        stream.write(self._header)
        fastavro.schemaless_writer(stream, self._parsed, record)
        return stream.getvalue()


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows as Python values; of wide integers Arrow knows the bytes only."""
    rows = table.to_pylist()
    for name in table.column_names:
        if is_column(table.column(name)):
            for row, number in zip(rows, numbers_in(table.column(name)), strict=True):
                row[name] = None if number is None else Decimal(number)
    return rows


def _python(kind: Avro, value: Any) -> Any:
    """Return a value of Arrow as fastavro takes it."""
    found = nullable(kind)
    if found is not None:
        return None if value is None else _python(found[1], value)
    match kind, value:
        case Record(fields=fields), Mapping():
            row = cast(Mapping[str, Any], value)
            return {f.name: _python(f.type, row[f.name]) for f in fields if f.name in row}
        case Array(items=items), list():
            return [_python(items, item) for item in cast(Sequence[Any], value)]
        case MapOf(values=of), list():
            return {key: _python(of, item) for key, item in cast(Sequence[Any], value)}
        case Primitive(logical=logical), datetime() if logical and logical.name[:5] != "local":
            return value.replace(tzinfo=UTC)  # fastavro would take the machine's time zone
        case _:
            return value
