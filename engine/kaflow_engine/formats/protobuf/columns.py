"""Messages of one class to columns: one pass over the messages for each field."""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter, methodcaller
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from google.protobuf.json_format import Error, MessageToJson

from kaflow_engine.formats.decoded import Unreadable, shown
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
from kaflow_engine.formats.types import arrow_type

_LAST = 2**63 // 10**6 - 1
"""The greatest number of seconds whose microseconds a TIMESTAMP can count."""


def column(field: Field, messages: Sequence[Any]) -> pa.Array:
    """Return the values of a field, typed as DuckDB exports them.

    Raises:
        Unreadable: Of some message, it cannot be a value of its type.
    """
    get: Callable[[Any], Any] = attrgetter(field.name)
    found = list(map(get, messages))
    match field.shape:
        case Shape.ALWAYS:
            return _values(field.kind, found, field.name)
        case Shape.MAYBE if isinstance(field.kind, Plain):  # what is not zero was written
            pairs = zip(found, messages, strict=True)
            present = [v if v or each.HasField(field.name) else None for v, each in pairs]
            return _values(field.kind, present, field.name)
        case Shape.MAYBE:
            there = map(methodcaller("HasField", field.name), messages)
            present = [value if has else None for value, has in zip(found, there, strict=True)]
            return _values(field.kind, present, field.name)
        case Shape.MANY:
            items = _values(field.kind, list(chain.from_iterable(found)), field.name)
            return pa.ListArray.from_arrays(_offsets(found), items)
        case Shape.MAPPED:
            keys = pa.array(list(chain.from_iterable(found)), arrow_type(field.key or ""))
            values = [each[key] for each in found for key in each]
            items = _values(field.kind, values, field.name)
            return pa.MapArray.from_arrays(_offsets(found), keys, items)
        case _:
            assert_never(field.shape)


def _offsets(found: Sequence[Sequence[object]]) -> pa.Array:
    lengths = np.fromiter(map(len, found), np.int32, len(found))
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _values(kind: Kind, found: list[Any], name: str) -> pa.Array:
    match kind:
        case Plain(duck=duck):
            return _plain(found, duck, name)
        case Choice(names=names):
            texts = [None if each is None else names.get(each, str(each)) for each in found]
            return pa.array(texts, pa.string())
        case Wrapped(duck=duck):
            return _plain([None if each is None else each.value for each in found], duck, name)
        case Instant():
            return _instants(found, name)
        case AsJson():
            texts = [None if each is None else _json(each, name) for each in found]
            return pa.array(texts, pa.string())
        case Message(fields=fields):
            return _structs(fields, found)
        case _:
            assert_never(kind)


def _plain(found: list[Any], duck: str, name: str) -> pa.Array:
    try:
        return pa.array(found, arrow_type(duck))
    except pa.ArrowInvalid:  # proto2 gives bytes for a string that is none
        raise Unreadable("NotUtf8", f"column '{name}' is not UTF-8") from None


def _instants(found: Sequence[Any], name: str) -> pa.Array:
    missing = np.fromiter((each is None for each in found), np.bool_, len(found))
    seconds = [0 if each is None else each.seconds for each in found]
    nanos = [0 if each is None else each.nanos for each in found]
    whole, part = np.array(seconds, np.int64), np.array(nanos, np.int64)
    if len(whole) and np.abs(whole).max() > _LAST:
        raise Unreadable("WrongType", f"column '{name}': a time beyond those of a TIMESTAMP")
    return pa.array(whole * 10**6 + part // 1000, pa.timestamp("us"), mask=missing)


def _structs(fields: Sequence[Field], found: Sequence[Any]) -> pa.Array:
    missing = [each is None for each in found]
    present = [each for each in found if each is not None]
    arrays = [column(field, present) for field in fields]
    names = [field.name for field in fields]
    structs = pa.StructArray.from_arrays(arrays, names)
    if len(present) == len(found):
        return structs
    places = np.cumsum(np.logical_not(missing)) - 1
    return structs.take(pa.array(places, pa.int64(), mask=np.array(missing)))


def _json(message: Any, name: str) -> str:
    try:
        return MessageToJson(message, preserving_proto_field_name=True, indent=None)
    except (Error, TypeError, ValueError) as error:
        why = f"column '{name}' cannot be JSON: {shown(str(error), 200)}"
        raise Unreadable("WrongType", why) from None
