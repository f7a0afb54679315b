"""JSON Schemas from columns.

Every property may be null, none is required, and there are no others: so a column can be added and
older readers and schemas stay compatible. Hints are those of Kafka Connect (`connect.type`).
"""

import json
from collections.abc import Mapping, Sequence
from typing import assert_never

from kaflow_engine.formats.types import (
    INTEGERS,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    parse_type,
)
from kaflow_engine.model.columns import Column

DECIMAL = "org.apache.kafka.connect.data.Decimal"

INTEGER_HINTS = {"TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32", "BIGINT": "int64"}
REAL_HINTS = {"FLOAT": "float32", "DOUBLE": "float64"}
FORMATS = {"TIMESTAMP": "date-time", "DATE": "date", "TIME": "time", "UUID": "uuid"}
"""Type → what it is called as `format` of a string."""

_INSTANT = "date-time"


def json_schema(columns: Sequence[Column], name: str = "Value") -> str:
    """Return the schema of an object with these columns as properties."""
    fields = [(column.name, parse_type(column.type)) for column in columns]
    about = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name}
    return json.dumps({**about, **_object(fields)})


def _object(fields: Sequence[tuple[str, Type]]) -> Mapping[str, object]:
    properties = {name: _optional(kind) for name, kind in fields}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _optional(kind: Type) -> Mapping[str, object]:
    if kind == Scalar("JSON"):
        return {}  # anything, null too
    return {"oneOf": [{"type": "null"}, _schema(kind)]}


def _schema(kind: Type) -> Mapping[str, object]:
    match kind:
        case Struct(fields=fields):
            return _object(fields)
        case List(element=element):
            return {"type": "array", "items": _optional(element)}
        case Map(value=value):
            of = _optional(value)
            return {"type": "object", "connect.type": "map", "additionalProperties": of}
        case Decimal(precision=precision, scale=scale):
            digits = {"scale": str(scale), "connect.decimal.precision": str(precision)}
            about = {"title": DECIMAL, "connect.type": "bytes", "connect.parameters": digits}
            return {"type": "number", **about}
        case Scalar(name=name):
            return _scalar(name)
        case _:
            assert_never(kind)


def _scalar(name: str) -> Mapping[str, object]:
    match name:
        case "BOOLEAN":
            return {"type": "boolean"}
        case "BLOB":
            return {"type": "string", "connect.type": "bytes", "contentEncoding": "base64"}
        case _ if name in INTEGER_HINTS:
            return {"type": "integer", "connect.type": INTEGER_HINTS[name]}
        case _ if name in INTEGERS:
            least, greatest = INTEGERS[name]
            return {"type": "integer", "minimum": least, "maximum": greatest}
        case _ if name in REAL_HINTS:
            return {"type": "number", "connect.type": REAL_HINTS[name]}
        case _ if name in FORMATS or name.startswith("TIMESTAMP"):
            return {"type": "string", "format": FORMATS.get(name, _INSTANT)}
        case _:
            return {"type": "string"}
