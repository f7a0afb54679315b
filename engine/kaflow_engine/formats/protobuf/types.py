"""Messages as data: their fields, and the DuckDB types that these have."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from kaflow_engine.formats.types import List, Map, Scalar, Struct, Type


@dataclass(frozen=True, slots=True)
class Plain:
    """A scalar; `duck` is its DuckDB type."""

    duck: str


@dataclass(frozen=True, slots=True)
class Choice:
    """An enum: the name of each number."""

    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Instant:
    """google.protobuf.Timestamp."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A message around one scalar, such as google.protobuf.Int64Value."""

    duck: str


@dataclass(frozen=True, slots=True)
class AsJson:
    """A message that has no columns of its own: one that is inside of itself, or empty."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message with fields, in the order of the schema."""

    name: str
    """Its full name."""
    fields: tuple["Field", ...]


Kind = Plain | Choice | Instant | Wrapped | AsJson | Message


class Shape(Enum):
    """How often a field has its value."""

    ALWAYS = "always"
    """Zero, empty or false where it was not written."""
    MAYBE = "maybe"
    """NULL where it was not written."""
    MANY = "many"
    MAPPED = "mapped"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message."""

    name: str
    kind: Kind
    """Of the value; of each element where there are many."""
    shape: Shape
    key: str | None = None
    """The DuckDB type of the keys of a map."""

    @property
    def type(self) -> Type:
        """Its DuckDB type."""
        of = _type(self.kind)
        if self.shape is Shape.MANY:
            return List(of)
        return of if self.key is None else Map(Scalar(self.key), of)


def _type(kind: Kind) -> Type:
    match kind:
        case Plain(duck=duck) | Wrapped(duck=duck):
            return Scalar(duck)
        case Choice() | AsJson():
            return Scalar("VARCHAR")
        case Instant():
            return Scalar("TIMESTAMP")
        case Message(fields=fields):
            return Struct(tuple((field.name, field.type) for field in fields))
        case _:
            assert_never(kind)
