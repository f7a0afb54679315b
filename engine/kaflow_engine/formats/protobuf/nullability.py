"""Fields of Protobuf messages that can be NULL."""

from collections.abc import Iterator

from kaflow_engine.formats.protobuf.read import FIRST, message_of
from kaflow_engine.formats.protobuf.types import Message, Shape


def nullable_fields(schema: str) -> frozenset[str]:
    """Return the fields that are NULL where they were not written, in lower case; a field of a
    field is `a.b`.

    Raises:
        ModelError: It is no Protobuf schema, or has no message with fields.
    """
    return frozenset(_inside(message_of(schema, FIRST), ""))


def _inside(message: Message, before: str) -> Iterator[str]:
    for field in message.fields:
        path = before + field.name.lower()
        if field.shape is Shape.MAYBE:
            yield path
        if isinstance(field.kind, Message) and field.shape in (Shape.MAYBE, Shape.ALWAYS):
            yield from _inside(field.kind, f"{path}.")
