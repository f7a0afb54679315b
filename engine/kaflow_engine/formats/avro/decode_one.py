"""Decode Avro records one at a time: those that the bulk reader cannot, and to explain errors."""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, assert_never, cast

import fastavro

from kaflow_engine.formats.avro.types import (
    Array,
    Avro,
    Enum,
    Fixed,
    Logical,
    MapOf,
    Primitive,
    Record,
    Recursive,
    Union,
    nullable,
)
from kaflow_engine.formats.avro.wide import is_wide_number, whole_number
from kaflow_engine.formats.decoded import Unreadable

_DIGITS = Context(prec=60)
_DAY = 86_400_000_000
_MILLIS = 2**63 // 1000


def read_record(payload: bytes, schema: str, fields: Mapping[str, Avro]) -> dict[str, object]:
    """Return the fields, as pyarrow takes them; raise Unreadable for bytes that do not fit.

    Times are numbers: micros (nanos for nanos), days for dates.
    """
    stream = io.BytesIO(payload)
    try:
        found = cast(dict[str, Any], fastavro.schemaless_reader(stream, _plain(schema), None))
    except Exception as error:  # fastavro promises no set of errors for broken bytes
        why = f"{type(error).__name__} {error}".strip()
        raise Unreadable("InvalidAvro", f"the bytes do not fit the schema: {why}") from error
    rest = len(payload) - stream.tell()
    if rest:
        raise Unreadable("InvalidAvro", f"{rest} bytes follow after the record")
    return {name: _python(kind, found[name], name) for name, kind in fields.items()}


@lru_cache(maxsize=256)
def _plain(schema: str) -> Any:
    """Parse a schema without its logical types: what they mean is read here, without loss."""
    return fastavro.parse_schema(_without_logical(json.loads(schema)), expand=False)


def _without_logical(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_logical(item) for item in cast(Sequence[Any], node)]
    if isinstance(node, dict):
        items = cast(Mapping[str, Any], node).items()
        return {k: v if k == "default" else _without_logical(v) for k, v in items if k != _LOGICAL}
    return node


_LOGICAL = "logicalType"


def _python(kind: Avro, value: Any, path: str) -> object:
    match kind:
        case Primitive(logical=logical) | Fixed(logical=logical):
            return value if logical is None else _meaning(logical, value, path)
        case Enum():
            return value
        case Array(items=items):
            return [_python(items, item, path) for item in cast(Sequence[Any], value)]
        case MapOf(values=of):
            entries = cast(Mapping[str, Any], value).items()
            return [(key, _python(of, item, f"{path}.{key}")) for key, item in entries]
        case Record(fields=fields):
            if not fields:
                return _json(value)
            return {f.name: _python(f.type, value[f.name], f"{path}.{f.name}") for f in fields}
        case Union(branches=branches):
            found = nullable(kind)
            if found is None:
                return _python(branches[0], value, path) if len(branches) == 1 else _json(value)
            return None if value is None else _python(found[1], value, path)
        case Recursive():
            return _json(value)
        case _:
            assert_never(kind)


def _meaning(logical: Logical, value: Any, path: str) -> object:
    if isinstance(value, bytes) and is_wide_number(logical):  # other types have none
        number = whole_number(value, logical)
        if number is None:
            raise Unreadable("WrongType", f"column '{path}': a number of more than 256 bits")
        return str(number)
    match logical.name:
        case "decimal" if isinstance(value, bytes) and 0 < logical.precision <= 38:
            digits = int.from_bytes(value, "big", signed=True)
            if abs(digits) >= 10**logical.precision:
                raise Unreadable(
                    "WrongType", f"column '{path}': more than {logical.precision} digits"
                )
            return Decimal(digits).scaleb(-logical.scale, _DIGITS)
        case "time-millis" | "time-micros" if isinstance(value, int):
            micros = value * 1000 if logical.name == "time-millis" else value
            if not 0 <= micros < _DAY:
                raise Unreadable("WrongType", f"column '{path}': {value} is not a time of day")
            return micros
        case "timestamp-millis" | "local-timestamp-millis" if isinstance(value, int):
            if not -_MILLIS < value < _MILLIS:
                raise Unreadable("WrongType", f"column '{path}': {value} is not a timestamp")
            return value * 1000
        case _:
            return value


def _json(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_base64)


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()
