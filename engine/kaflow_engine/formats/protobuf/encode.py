"""Encode rows as Protobuf messages with Confluent framing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.decoded import BadValue, Encoded, shown
from kaflow_engine.formats.framing import header
from kaflow_engine.formats.protobuf.read import FIRST, class_of, message_of
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
from kaflow_engine.formats.types import (
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    arrow_type,
    type_text,
)

Put = Callable[[Any, Any], None]
"""Writes a value, which is not None, into a message."""

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which google.protobuf.Timestamp can hold."""


class ProtobufEncoder:
    """Writes tables as messages of the first type of a registered schema, columns by name."""

    def __init__(self, schema: str, schema_id: int) -> None:
        message = message_of(schema, FIRST)
        self._new: Callable[[], Any] = class_of(schema, FIRST)
        self._fields = {field.name: field for field in message.fields}
        self._before = header(schema_id) + b"\0"

    def encode(self, table: pa.Table) -> Encoded:
        """Encode every row; a row that the schema cannot hold is bad, the others are not."""
        fields = [self._fields[name] for name in table.column_names]
        puts = [_field(field) for field in fields]
        carried = _carried(table, fields)
        columns = [carried.column(number).to_pylist() for number in range(len(fields))]
        values: list[bytes | None] = []
        bad: list[BadValue] = []
        for row in range(table.num_rows):
            message = self._new()
            try:
                for put, column in zip(puts, columns, strict=True):
                    value = column[row]
                    if value is not None:
                        put(message, value)
                values.append(self._before + message.SerializeToString())
            except (ValueError, TypeError) as error:
                values.append(None)
                bad.append(BadValue(row, "CannotEncode", shown(str(error), 300)))
        return Encoded(pa.array(values, pa.binary()), tuple(bad))


def _carried(table: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Return the columns as their fields take them: texts as text, times as microseconds."""
    casts = [
        f"CAST({identifier(field.name)} AS {type_text(field.type)}) AS {identifier(field.name)}"
        for field in fields
    ]
    cast = query(f"SELECT {', '.join(casts)} FROM rows", table)
    kinds = [(field.name, arrow_type(type_text(_numbers(field.type)))) for field in fields]
    return cast.cast(pa.schema(kinds))


def _numbers(kind: Type) -> Type:
    """Return the type with whole numbers for times."""
    match kind:
        case Scalar(name="TIMESTAMP"):
            return Scalar("BIGINT")
        case List(element=element):
            return List(_numbers(element))
        case Struct(fields=fields):
            return Struct(tuple((name, _numbers(field)) for name, field in fields))
        case Map(key=key, value=value):
            return Map(key, _numbers(value))
        case Scalar() | Decimal():
            return kind
        case _:
            assert_never(kind)


def _field(field: Field) -> Put:
    name = field.name
    match field.shape:
        case Shape.MANY:
            return _many(field)
        case Shape.MAPPED:
            return _mapped(field)
        case Shape.ALWAYS | Shape.MAYBE:
            return _one(field.kind, name)
        case _:
            assert_never(field.shape)


def _one(kind: Kind, name: str) -> Put:
    match kind:
        case Plain():
            return lambda message, value: setattr(message, name, value)
        case Message() | Instant():
            fill = _filling(kind, name)
            return lambda message, value: fill(getattr(message, name), value)
        case Choice() | Wrapped() | AsJson():
            raise _not_ours(name)
        case _:
            assert_never(kind)


def _filling(kind: Message | Instant, name: str) -> Put:
    """Return what writes a value into the message that is its own."""
    if isinstance(kind, Instant):
        return _instant(name)
    puts = [(field.name, _field(field)) for field in kind.fields]

    def fill(message: Any, value: Mapping[str, Any]) -> None:
        message.SetInParent()
        for key, put in puts:
            inner = value[key]
            if inner is not None:
                put(message, inner)

    return fill


def _instant(name: str) -> Put:
    def put(message: Any, micros: int) -> None:
        seconds, rest = divmod(micros, 10**6)
        if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
            raise ValueError(f"column '{name}': a time beyond the years 1 to 9999")
        message.SetInParent()
        message.seconds, message.nanos = seconds, rest * 1000

    return put


def _many(field: Field) -> Put:
    name, kind = field.name, field.kind
    if isinstance(kind, Plain):

        def extend(message: Any, values: Sequence[Any]) -> None:
            _whole(name, values)
            getattr(message, name).extend(values)

        return extend
    if not isinstance(kind, Message | Instant):
        raise _not_ours(name)
    fill = _filling(kind, name)

    def add(message: Any, values: Sequence[Any]) -> None:
        _whole(name, values)
        for value in values:
            fill(getattr(message, name).add(), value)

    return add


def _mapped(field: Field) -> Put:
    name, kind = field.name, field.kind
    if isinstance(kind, Plain):

        def put(message: Any, values: Sequence[tuple[Any, Any]]) -> None:
            _whole(name, [value for _, value in values])
            getattr(message, name).update(values)

        return put
    if not isinstance(kind, Message | Instant):
        raise _not_ours(name)
    fill = _filling(kind, name)

    def put_messages(message: Any, values: Sequence[tuple[Any, Any]]) -> None:
        _whole(name, [value for _, value in values])
        for key, value in values:
            fill(getattr(message, name)[key], value)

    return put_messages


def _whole(name: str, values: Sequence[Any]) -> None:
    if None in values:
        raise ValueError(f"column '{name}' has a NULL inside, and Protobuf has none there")


def _not_ours(name: str) -> ValueError:
    return ValueError(f"field '{name}' is of a type that no column is written as")
