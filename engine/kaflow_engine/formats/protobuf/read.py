"""The messages of a Protobuf schema as data, and their columns."""

from collections.abc import Sequence
from functools import lru_cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message as Written
from google.protobuf.message_factory import GetMessageClass

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.protobuf.compile import file_of
from kaflow_engine.formats.protobuf.types import (
    AsJson,
    Choice,
    Field,
    Instant,
    Kind,
    Message,
    Plain,
    Shape,
    Wrapped,
)
from kaflow_engine.formats.types import type_text
from kaflow_engine.model.columns import Column

FIRST = (0,)
"""Of a schema with several messages, values are taken to be of the first."""

_SCALARS = {
    FieldDescriptor.TYPE_DOUBLE: "DOUBLE",
    FieldDescriptor.TYPE_FLOAT: "FLOAT",
    FieldDescriptor.TYPE_INT64: "BIGINT",
    FieldDescriptor.TYPE_UINT64: "UBIGINT",
    FieldDescriptor.TYPE_INT32: "INTEGER",
    FieldDescriptor.TYPE_FIXED64: "UBIGINT",
    FieldDescriptor.TYPE_FIXED32: "UINTEGER",
    FieldDescriptor.TYPE_BOOL: "BOOLEAN",
    FieldDescriptor.TYPE_STRING: "VARCHAR",
    FieldDescriptor.TYPE_BYTES: "BLOB",
    FieldDescriptor.TYPE_UINT32: "UINTEGER",
    FieldDescriptor.TYPE_SFIXED32: "INTEGER",
    FieldDescriptor.TYPE_SFIXED64: "BIGINT",
    FieldDescriptor.TYPE_SINT32: "INTEGER",
    FieldDescriptor.TYPE_SINT64: "BIGINT",
}
_WRAPPERS = {
    f"google.protobuf.{name}Value": duck
    for name, duck in {
        "Double": "DOUBLE",
        "Float": "FLOAT",
        "Int64": "BIGINT",
        "UInt64": "UBIGINT",
        "Int32": "INTEGER",
        "UInt32": "UINTEGER",
        "Bool": "BOOLEAN",
        "String": "VARCHAR",
        "Bytes": "BLOB",
    }.items()
}
_TIMESTAMP = "google.protobuf.Timestamp"
_AS_JSON = {f"google.protobuf.{name}" for name in ("Any", "Struct", "Value", "ListValue")}


def columns_of(schema: str) -> tuple[Column, ...]:
    """Return the columns of the first message of a schema.

    Raises:
        ModelError: It is no Protobuf schema, or has no message with fields.
    """
    message = message_of(schema, FIRST)
    return tuple(Column(field.name, type_text(field.type)) for field in message.fields)


@lru_cache(maxsize=256)
def message_of(schema: str, path: tuple[int, ...]) -> Message:
    """Return a message: its place in the file, then in the message around it, and so on.

    Raises:
        ModelError: There is none, or it has no fields.
    """
    descriptor = descriptor_of(schema, path)
    found = _kind_of(descriptor, ())
    if not isinstance(found, Message):
        raise ModelError(
            f"the Protobuf message {descriptor.full_name} has no fields that could be columns",
            hint="wrap the value in a message; its fields become columns",
        )
    return found


@lru_cache(maxsize=256)
def class_of(schema: str, path: tuple[int, ...]) -> type[Written]:
    """Return the class of a message, as `message_of` finds it."""
    return GetMessageClass(descriptor_of(schema, path))


def descriptor_of(schema: str, path: Sequence[int]) -> Descriptor:
    """Return the descriptor of a message, as `message_of` finds it."""
    file = file_of(schema)
    inside = list(file.message_types_by_name.values())
    found = None
    for place in path:
        if not 0 <= place < len(inside):
            raise ModelError(f"the Protobuf schema has no message at {'.'.join(map(str, path))}")
        found = inside[place]
        inside = list(found.nested_types)
    if found is None:
        raise ModelError("the Protobuf schema has no message")
    return found


def _kind_of(descriptor: Descriptor, within: tuple[str, ...]) -> Kind:
    name = descriptor.full_name
    if name == _TIMESTAMP:
        return Instant()
    if name in _WRAPPERS:
        return Wrapped(_WRAPPERS[name])
    if name in within or name in _AS_JSON or not descriptor.fields:
        return AsJson()
    spelled: dict[str, str] = {}
    fields = [
        _field(field, (*within, name))
        for field in descriptor.fields
        if spelled.setdefault(field.name.lower(), field.name) == field.name
    ]
    return Message(name, tuple(fields))


def _field(field: FieldDescriptor, within: tuple[str, ...]) -> Field:
    inner = field.message_type
    if field.is_repeated and inner is not None and inner.GetOptions().map_entry:
        key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
        return Field(field.name, _value(value, within), Shape.MAPPED, _SCALARS[key.type])
    if field.is_repeated:
        return Field(field.name, _value(field, within), Shape.MANY)
    known = not field.has_presence or field.has_default_value or field.is_required
    return Field(field.name, _value(field, within), Shape.ALWAYS if known else Shape.MAYBE)


def _value(field: FieldDescriptor, within: tuple[str, ...]) -> Kind:
    if field.message_type is not None:
        return _kind_of(field.message_type, within)
    if field.enum_type is not None:
        return Choice({value.number: value.name for value in field.enum_type.values})
    return Plain(_SCALARS[field.type])
