"""Avro schemas as data: names resolved, nullable unions recognised."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from kaflow_engine.errors import ModelError

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class Logical:
    """What a stored type means, such as `timestamp-millis`."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts."""

    name: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    """A given number of bytes."""

    size: int
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class Enum:
    """One of a list of names."""

    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of items."""

    items: "Avro"


@dataclass(frozen=True, slots=True)
class MapOf:
    """Values by name."""

    values: "Avro"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record."""

    name: str
    type: "Avro"
    default: str | None = None
    """JSON text; None where there is no default."""


@dataclass(frozen=True, slots=True)
class Record:
    """Named fields, in order."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """One of several types."""

    branches: tuple["Avro", ...]


@dataclass(frozen=True, slots=True)
class Recursive:
    """A record inside of itself."""

    name: str


Avro = Primitive | Fixed | Enum | Array | MapOf | Record | Union | Recursive

NULL = Primitive("null")


@lru_cache(maxsize=1024)
def parse_avro(schema: str) -> Avro:
    """Read an Avro schema; raise ModelError when it is none."""
    try:
        return _Names({}).resolve(json.loads(schema), "")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"not an Avro schema: {schema[:200]}") from error


def nullable(kind: Avro) -> tuple[int, Avro] | None:
    """Return (index of null, the other type) of a union of null and one type."""
    match kind:
        case Union(branches=(first, other)) if first == NULL:
            return 0, other
        case Union(branches=(other, last)) if last == NULL:
            return 1, other
        case _:
            return None


def is_regular(kind: Avro) -> bool:
    """Whether records of this type can be read and written in bulk."""
    match kind:
        case Primitive() | Enum() | Fixed():
            return True
        case Array(items=inner) | MapOf(values=inner):
            return is_regular(inner)
        case Record(fields=fields):
            return bool(fields) and all(is_regular(field.type) for field in fields)
        case Union():
            found = nullable(kind)
            return found is not None and is_regular(found[1])
        case Recursive():
            return False


def stored(kind: Avro) -> Avro:
    """Return a type of time as the number that stands for it, other types as they are."""
    match kind:
        case Primitive(name="int" | "long" as name):
            return Primitive(name)
        case Union(branches=branches):
            return Union(tuple(stored(branch) for branch in branches))
        case _:
            return kind


@dataclass(frozen=True, slots=True)
class _Names:
    known: dict[str, Avro]

    def resolve(self, node: Any, space: str) -> Avro:
        if isinstance(node, str):
            return self._named(node, space)
        if isinstance(node, list):
            return Union(tuple(self.resolve(branch, space) for branch in cast(list[Any], node)))
        found = cast(Mapping[str, Any], node)
        match found["type"]:
            case "record" | "error":
                return self._record(found, space)
            case "enum":
                return self._define(found, space, Enum(tuple(found["symbols"])))
            case "fixed":
                return self._define(found, space, Fixed(int(found["size"]), _logical(found)))
            case "array":
                return Array(self.resolve(found["items"], space))
            case "map":
                return MapOf(self.resolve(found["values"], space))
            case str(name) if name in _PRIMITIVES:
                return Primitive(name, _logical(found))
            case inner:
                return self.resolve(inner, space)

    def _record(self, node: Mapping[str, Any], space: str) -> Record:
        full = _full_name(node["name"], node.get("namespace", space))
        self.known[full] = Recursive(full)
        inner = full.rpartition(".")[0]
        fields = tuple(self._field(each, inner) for each in cast(Sequence[Any], node["fields"]))
        record = Record(full, fields)
        self.known[full] = record
        return record

    def _field(self, node: Mapping[str, Any], space: str) -> Field:
        default = json.dumps(node["default"]) if "default" in node else None
        return Field(str(node["name"]), self.resolve(node["type"], space), default)

    def _define(self, node: Mapping[str, Any], space: str, kind: Avro) -> Avro:
        self.known[_full_name(node["name"], node.get("namespace", space))] = kind
        return kind

    def _named(self, name: str, space: str) -> Avro:
        if name in _PRIMITIVES:
            return Primitive(name)
        full = _full_name(name, space)
        return self.known[full] if full in self.known else self.known[name]


def _full_name(name: str, space: str | None) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _logical(node: Mapping[str, Any]) -> Logical | None:
    name = node.get("logicalType")
    if not isinstance(name, str):
        return None
    return Logical(name, int(node.get("precision", 0)), int(node.get("scale", 0)))
