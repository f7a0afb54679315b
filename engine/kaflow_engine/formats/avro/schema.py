"""Avro schemas from columns, and columns from Avro schemas."""

import json
import re
from collections.abc import Sequence
from typing import Any, assert_never

from kaflow_engine.duck.wide.integers import BIGNUM, DIGITS, is_wide
from kaflow_engine.errors import ModelError
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
    parse_avro,
)
from kaflow_engine.formats.avro.wide import is_wide_number
from kaflow_engine.formats.types import (
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    parse_type,
    type_text,
)
from kaflow_engine.model.columns import Column

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_STORED = {
    "null": "VARCHAR",
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BLOB",
    "string": "VARCHAR",
}
_LOGICAL = {
    ("int", "date"): "DATE",
    ("int", "time-millis"): "TIME",
    ("long", "time-micros"): "TIME",
    ("long", "timestamp-millis"): "TIMESTAMP",
    ("long", "timestamp-micros"): "TIMESTAMP",
    ("long", "timestamp-nanos"): "TIMESTAMP_NS",
    ("long", "local-timestamp-millis"): "TIMESTAMP",
    ("long", "local-timestamp-micros"): "TIMESTAMP",
    ("long", "local-timestamp-nanos"): "TIMESTAMP_NS",
    ("string", "uuid"): "UUID",
}

_MICROS = {"type": "long", "logicalType": "timestamp-micros"}
_NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
_WRITTEN: dict[str, object] = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "UTINYINT": "int",
    "USMALLINT": "int",
    "UINTEGER": "long",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "JSON": "string",
    "UUID": "string",
    "BLOB": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIME": {"type": "long", "logicalType": "time-micros"},
    "TIMESTAMP": _MICROS,
    "TIMESTAMP_S": _MICROS,
    "TIMESTAMP_MS": _MICROS,
    "TIMESTAMP WITH TIME ZONE": _MICROS,
    "TIMESTAMP_NS": _NANOS,
}
_WIDE = {"UBIGINT": 20, "HUGEINT": 38, "UHUGEINT": 38}  # digits, as DECIMAL(n, 0)


def columns_of(schema: str) -> tuple[Column, ...]:
    """Return the columns that a record schema gives.

    A union of several types, a record inside of itself and a record without fields are VARCHAR, as
    JSON text. Raise ModelError when the schema is not that of a record.
    """
    record = record_of(schema)
    return tuple(Column(f.name, type_text(declared(f.type))) for f in record.fields)


def record_of(schema: str) -> Record:
    """Read the schema of a record; raise ModelError when it is something else."""
    found = parse_avro(schema)
    if not isinstance(found, Record):
        raise ModelError(
            f"the Avro schema is not a record: {schema[:200]}",
            hint="wrap the value in a record; its fields become columns",
        )
    return found


def declared(kind: Avro) -> Type:
    """Return the DuckDB type of a value of this Avro type."""
    match kind:
        case Primitive(name=name, logical=logical):
            decimal = _number(logical) if name == "bytes" else None
            key = (name, logical.name if logical else "")
            return decimal or Scalar(_LOGICAL.get(key, _STORED[name]))
        case Fixed(logical=logical):
            return _number(logical) or Scalar("BLOB")
        case Enum() | Recursive():
            return Scalar("VARCHAR")
        case Array(items=items):
            return List(declared(items))
        case MapOf(values=values):
            return Map(Scalar("VARCHAR"), declared(values))
        case Record(fields=fields):
            inner = tuple((field.name, declared(field.type)) for field in fields)
            return Struct(inner) if inner else Scalar("VARCHAR")
        case Union(branches=branches):
            found = nullable(kind)
            if found is None:
                return declared(branches[0]) if len(branches) == 1 else Scalar("VARCHAR")
            return declared(found[1])
        case _:
            assert_never(kind)


def _number(logical: Logical | None) -> Decimal | Scalar | None:
    """Return the type of a decimal: BIGNUM of a whole number of more digits than DECIMAL has."""
    if logical is None:
        return None
    if is_wide_number(logical):
        return Scalar(BIGNUM)
    if logical.name != "decimal" or not 0 < logical.precision <= 38:
        return None
    return Decimal(logical.precision, logical.scale)


def avro_schema(columns: Sequence[Column], name: str = "Value") -> str:
    """Return the schema of a record of these columns, every field nullable with default null.

    Raise ModelError for a name or a type that Avro does not have.
    """
    fields = [(column.name, parse_type(column.type)) for column in columns]
    return json.dumps(_record(name, fields))


def _record(name: str, fields: Sequence[tuple[str, Type]]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": _checked(field), "type": _optional(kind, f"{name}_{field}"), "default": None}
            for field, kind in fields
        ],
    }


def _optional(kind: Type, path: str) -> list[object]:
    return ["null", _written(kind, path)]


def _written(kind: Type, path: str) -> object:
    match kind:
        case Decimal(precision=precision, scale=scale):
            return _decimal_bytes(precision, scale)
        case List(element=element):
            return {"type": "array", "items": _optional(element, f"{path}_item")}
        case Map(key=Scalar(name="VARCHAR"), value=value):
            return {"type": "map", "values": _optional(value, f"{path}_value")}
        case Struct(fields=fields):
            return _record(path, fields)
        case Scalar(name=name) if name in _WRITTEN:
            return _WRITTEN[name]
        case Scalar(name=name) if name in _WIDE:
            return _decimal_bytes(_WIDE[name], 0)
        case Scalar(name=name) if is_wide(name):
            return _decimal_bytes(DIGITS, 0)
        case Scalar() | Map():
            raise ModelError(
                f"Avro has no type for {type_text(kind)} (at {path.partition('_')[2]})",
                hint="cast it to VARCHAR in the query",
            )
        case _:
            assert_never(kind)


def _decimal_bytes(precision: int, scale: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ModelError(
            f"'{name}' cannot be a field of an Avro record",
            hint="give it an alias of letters, digits and underscores",
        )
    return name
