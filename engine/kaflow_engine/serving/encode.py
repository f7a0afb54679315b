"""Rows of Arrow as JSON, and the types of columns as answers call them.

| type | JSON |
|---|---|
| a time with a zone | RFC 3339 in UTC: `2026-09-10T00:00:00Z` |
| a time without one | `2026-09-10T01:02:03.456` |
| DECIMAL, and integers of more than 64 bits | a text with all digits |
| NaN, infinities | `"NaN"`, `"Infinity"`, `"-Infinity"` |
| BLOB | base64 |
| STRUCT, lists | objects, arrays |
| MAP | an array of `{"key": …, "value": …}` |
| INTERVAL | `{"months": …, "days": …, "nanoseconds": …}` |
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NESTED = (("STRUCT", "STRUCT"), ("MAP", "MAP"), ("ENUM", "VARCHAR"), ("DECIMAL", None))


def type_name(kind: str) -> str:
    """Return what answers call a type of DuckDB.

    >>> type_name("STRUCT(a INTEGER)[]"), type_name("MAP(VARCHAR, INTEGER)"), type_name("BIGINT")
    ('LIST', 'MAP', 'BIGINT')
    >>> type_name("ENUM('a', 'b')"), type_name("DECIMAL(9,2)")
    ('VARCHAR', 'DECIMAL(9,2)')
    """
    if kind.endswith("]"):
        return "LIST"
    return next((name for begin, name in _NESTED if kind.startswith(begin) and name), kind)


def rows_json(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> bytes:
    """Return rows as an array of objects.

    Args:
        batches: Rows, all of one form.
        names: Of their columns.
    """
    rows: list[dict[str, Any]] = []
    for batch in batches:
        columns = [_values(column) for column in batch.columns]
        rows += (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def _values(column: pa.Array) -> list[Any]:
    kind: Any = column.type
    if pa.types.is_timestamp(kind):  # as numbers: DuckDB's reach further than Python's
        ticks = column.cast(pa.int64()).to_pylist()
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        zone = "Z" if kind.tz else ""
        return [None if each is None else _instant(each, unit, zone) for each in ticks]
    plain = _plain(kind)
    values = column.to_pylist()
    return values if plain is None else [None if v is None else plain(v) for v in values]


def _plain(kind: Any) -> Callable[[Any], Any] | None:
    """Return what makes JSON of a value of a type that is not NULL; None: it is JSON."""
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_floating(kind):
        return _float
    if types.is_decimal(kind):
        return _digits
    if types.is_binary(kind):
        return _base64
    if types.is_timestamp(kind):
        return _time
    if types.is_date(kind) or types.is_time(kind):
        return _iso
    if types.is_interval(kind):
        return _interval
    if types.is_map(kind):
        key, item = _or_same(kind.key_type), _or_same(kind.item_type)
        return lambda pairs: [{"key": key(k), "value": item(v)} for k, v in pairs]
    if types.is_struct(kind):
        fields = {kind.field(n).name: _or_same(kind.field(n).type) for n in range(kind.num_fields)}
        return lambda row: {name: made(row[name]) for name, made in fields.items()}
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        element = _or_same(kind.value_type)
        return lambda values: [element(each) for each in values]
    return None


def _or_same(kind: Any) -> Callable[[Any], Any]:
    plain = _plain(kind)
    return lambda value: value if value is None or plain is None else plain(value)


def _instant(ticks: int, unit: int, zone: str) -> str:
    """Return a time as text.

    >>> _instant(1_757_462_400_500, 1000, "Z"), _instant(2**63 - 1, 10**6, "")
    ('2025-09-10T00:00:00.5Z', 'infinity')
    """
    seconds, rest = divmod(ticks, unit)
    try:
        text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:
        return "infinity" if ticks > 0 else "-infinity"
    digits = str(unit + rest)[1:].rstrip("0") if rest else ""
    return f"{text.rjust(19, '0')}{'.' if digits else ''}{digits}{zone}"


def _time(value: datetime) -> str:
    aware = value.tzinfo is not None
    text = value.astimezone(UTC).replace(tzinfo=None).isoformat() if aware else value.isoformat()
    return _without_zeros(text) + ("Z" if aware else "")


def _iso(value: date | time) -> str:
    return _without_zeros(value.isoformat())


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def _float(value: float) -> float | str:
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _digits(value: Decimal) -> str:
    return f"{value:f}"


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _interval(value: Any) -> dict[str, int]:
    return {"months": value.months, "days": value.days, "nanoseconds": value.nanoseconds}
