"""Schemas of Protobuf (proto3) from columns.

Every scalar is `optional`, so NULL is not zero. Fields are numbered in the order of the columns.
What Protobuf has no type for is a `string` with the text that `CAST(… AS VARCHAR)` gives: DECIMAL,
HUGEINT, UUID, DATE, TIME and others. A list or map has no NULL of its own, and no NULL inside.
"""

import re
from collections.abc import Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.protobuf.compile import file_of
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

INSTANT = "google.protobuf.Timestamp"
_SCALARS = {
    "BOOLEAN": "bool",
    "TINYINT": "int32",
    "SMALLINT": "int32",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UTINYINT": "uint32",
    "USMALLINT": "uint32",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BLOB": "bytes",
}
_KEYS = {"bool", "int32", "int64", "uint32", "uint64", "string"}
_RESERVED = range(19_000, 20_000)


def protobuf_schema(columns: Sequence[Column], name: str = "Value") -> str:
    """Return the .proto text of a message with these columns as fields.

    Raises:
        ModelError: A column has a name or a type that Protobuf does not have.
    """
    fields = [(column.name, parse_type(column.type)) for column in columns]
    body = "\n".join(_message(_checked(name), fields, "", ""))
    imports = 'import "google/protobuf/timestamp.proto";\n\n' if INSTANT in body else ""
    text = f'syntax = "proto3";\n\n{imports}{body}\n'
    file_of(text)  # names that meet in Protobuf alone, such as a_b and aB in JSON
    return text


def _message(name: str, fields: Sequence[tuple[str, Type]], path: str, indent: str) -> list[str]:
    inner = indent + "  "
    nested: list[str] = []
    lines: list[str] = []
    for number, (field, kind) in enumerate(fields, 1):
        where = f"{path}{_checked(field)}"
        about = _field(field, kind, where)
        held = _held(kind)
        if isinstance(held, Struct):
            nested += _message(f"{field}_type", held.fields, f"{where}.", inner)
        # 19000 to 19999 belong to Protobuf itself
        lines.append(f"{inner}{about} = {number + (number >= _RESERVED[0]) * len(_RESERVED)};")
    return [f"{indent}message {name} {{", *nested, *lines, f"{indent}}}"]


def _held(kind: Type) -> Type:
    """Return the type of an element, or the type itself."""
    match kind:
        case List(element=element):
            return element
        case Map(value=value):
            return value
        case _:
            return kind


def _field(name: str, kind: Type, where: str) -> str:
    match kind:
        case List(element=element):
            return f"repeated {_one(element, name, where)} {name}"
        case Map(key=key, value=value):
            written = _one(key, name, where)
            if written not in _KEYS:
                raise _no_type(kind, where, "cast its keys to VARCHAR in the query")
            return f"map<{written}, {_one(value, name, where)}> {name}"
        case Struct():
            return f"{name}_type {name}"
        case Scalar() | Decimal():
            written = _one(kind, name, where)
            return f"{written} {name}" if written == INSTANT else f"optional {written} {name}"


def _one(kind: Type, name: str, where: str) -> str:
    """Return the type of one value."""
    match kind:
        case List() | Map():
            raise _no_type(kind, where, "put the inner list into a struct: {'items': …}")
        case Struct():
            return f"{name}_type"
        case Scalar(name=duck) if duck.startswith("TIMESTAMP"):
            return INSTANT
        case Scalar(name=duck):
            return _SCALARS.get(duck, "string")
        case Decimal():
            return "string"


def _no_type(kind: Type, where: str, hint: str) -> ModelError:
    text = type_text(kind)
    return ModelError(f"Protobuf has no type for {text} inside of another (at {where})", hint=hint)


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ModelError(
            f"'{name}' cannot be a name in Protobuf",
            hint="give it an alias of letters, digits and underscores",
        )
    return name
