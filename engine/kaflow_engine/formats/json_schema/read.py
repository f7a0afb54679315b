"""Columns from JSON Schemas.

Whether null is allowed does not matter, for every column may be NULL. What can be of several types,
is of any type, or is inside of itself is VARCHAR, as JSON text. References are followed within a
schema, and to the schemas that the registry lists for it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.json_schema.write import DECIMAL, FORMATS, INTEGER_HINTS, REAL_HINTS
from kaflow_engine.formats.references import parts_of
from kaflow_engine.formats.types import (
    INTEGERS,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    type_text,
)
from kaflow_engine.model.columns import Column

Node = Mapping[str, Any]

_TEXT = Scalar("VARCHAR")
_BY_HINT = {hint: name for name, hint in (INTEGER_HINTS | REAL_HINTS).items()}
_BY_FORMAT = {form: name for name, form in FORMATS.items()}
_BY_RANGE = {limits: name for name, limits in INTEGERS.items()}


@lru_cache(maxsize=256)
def columns_of(schema: str) -> tuple[Column, ...]:
    """Return the columns of objects of a schema; of names that differ by case alone, the first.

    Raises:
        ModelError: It is no JSON Schema, or not that of an object with properties.
    """
    reader, top = _reader(schema)
    found = reader.kind(top, ())
    if not isinstance(found, Struct):
        text, _ = parts_of(schema)
        raise ModelError(
            f"the JSON Schema is not that of an object with properties: {text[:200]}",
            hint="wrap the value in an object; its properties become columns",
        )
    return tuple(Column(name, type_text(kind)) for name, kind in found.fields)


@lru_cache(maxsize=256)
def nullable_properties(schema: str) -> frozenset[str]:
    """Return the properties that are not required, or may be null, in lower case; a property of a
    property is `a.b`.

    Raises:
        ModelError: It is no JSON Schema.
    """
    reader, top = _reader(schema)
    found = reader.properties(top, ())
    return frozenset(name for name, can_be in found.items() if can_be)


def _reader(schema: str) -> "tuple[_Reader, _At]":
    """Return a reader of a schema and of those that it refers to, and where it begins."""
    text, others = parts_of(schema)
    documents = {"": _parsed(text), **{name: _parsed(other) for name, other in others.items()}}
    return _Reader(documents), _At("", documents[""])


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        raise ModelError(f"not a JSON Schema: {text[:200]}") from None


@dataclass(frozen=True, slots=True)
class _At:
    """A part of a document."""

    document: str
    node: object


@dataclass(frozen=True, slots=True)
class _Reader:
    documents: Mapping[str, object]

    def kind(self, at: _At, within: tuple[str, ...]) -> Type:
        """Return the type of what a schema describes; `within` are references that led there."""
        at, within = self._followed(at, within)
        node = _node(at.node)
        if node is None:
            return _TEXT
        for word in ("oneOf", "anyOf"):
            if word in node:
                present = [each for each in _nodes(node[word]) if not _is_null(each)]
                only = present[0] if len(present) == 1 else None
                return self.kind(_At(at.document, only), within)
        if "allOf" in node:
            return self._all([_At(at.document, each) for each in _nodes(node["allOf"])], within)
        return self._plain(at.document, node, within)

    def properties(self, at: _At, within: tuple[str, ...]) -> dict[str, bool]:
        """Return whether each property can be NULL, those inside of others too."""
        at, within = self._followed(at, within)
        node = _node(at.node) or {}
        found: dict[str, bool] = {}
        for part in (
            each for word in ("allOf", "oneOf", "anyOf") for each in _nodes(node.get(word))
        ):
            for name, can_be in self.properties(_At(at.document, part), within).items():
                found[name] = found.get(name, True) and can_be  # one that says so is enough
        required = {str(name) for name in _nodes(node.get("required"))}
        for name, of in cast(Node, node.get("properties") or {}).items():
            inside = _At(at.document, of)
            found[name.lower()] = name not in required or self._may_be_null(inside, ())
            for path, can_be in self.properties(inside, within).items():
                found[f"{name.lower()}.{path}"] = can_be
        return found

    def _may_be_null(self, at: _At, within: tuple[str, ...]) -> bool:
        """Tell whether nothing that a schema says keeps null out."""
        at, within = self._followed(at, within)
        node = _node(at.node)
        if node is None:
            return at.node is not False

        def parts(word: str) -> Iterator[bool]:
            inside = _nodes(node.get(word))
            return (self._may_be_null(_At(at.document, part), within) for part in inside)

        said: object = node.get("type", "null")
        return (
            "null" in (cast(Sequence[object], said) if isinstance(said, list) else (said,))
            and ("enum" not in node or None in _nodes(node["enum"]))
            and node.get("const") is None
            and all(parts("allOf"))
            and all(any(parts(word)) for word in ("oneOf", "anyOf") if word in node)
        )

    def _followed(self, at: _At, within: tuple[str, ...]) -> tuple[_At, tuple[str, ...]]:
        """Return what references lead to, and all that led there; in a circle, `false`, which
        describes nothing."""
        node = _node(at.node)
        if node is None or "$ref" not in node:
            return at, within
        target = f"{at.document}|{node['$ref']}"
        if target in within:
            return _At(at.document, False), within
        return self._followed(self._target(at.document, str(node["$ref"])), (*within, target))

    def _plain(self, document: str, node: Node, within: tuple[str, ...]) -> Type:
        match _type_of(node):
            case "object":
                return self._object(document, node, within)
            case "array":
                items = node.get("items")
                return (
                    _TEXT if isinstance(items, list) else List(self._part(document, items, within))
                )
            case str(name):
                return _scalar(name, node)
            case None:
                return _TEXT

    def _part(self, document: str, node: object, within: tuple[str, ...]) -> Type:
        return self.kind(_At(document, node), within)

    def _object(self, document: str, node: Node, within: tuple[str, ...]) -> Type:
        properties = cast(Node, node.get("properties") or {})
        if properties and node.get("connect.type") != "map":
            spelled: dict[str, str] = {}
            fields = [
                (name, self._part(document, of, within))
                for name, of in properties.items()
                if name and spelled.setdefault(name.lower(), name) == name
            ]
            return Struct(tuple(fields)) if fields else _TEXT
        more = node.get("additionalProperties")
        if isinstance(more, Mapping):
            return Map(_TEXT, self._part(document, cast(Node, more), within))
        return _TEXT

    def _all(self, parts: Sequence[_At], within: tuple[str, ...]) -> Type:
        kinds = [self.kind(part, within) for part in parts]
        if len(kinds) == 1:
            return kinds[0]
        fields: dict[str, Type] = {}
        for kind in kinds:
            if not isinstance(kind, Struct):
                return _TEXT
            fields |= kind.fields
        return Struct(tuple(fields.items()))

    def _target(self, document: str, reference: str) -> _At:
        name, _, pointer = reference.partition("#")
        where = name or document
        if where not in self.documents:
            raise ModelError(
                f"the JSON Schema refers to '{reference}', which the registry does not list for it",
                hint="register it with its references, or declare the columns of the topic",
            )
        node = self.documents[where]
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            node = cast(Node, node).get(key) if isinstance(node, Mapping) else None
        if node is None:
            raise ModelError(f"the JSON Schema refers to '{reference}', which is not there")
        return _At(where, node)


def _node(found: object) -> Node | None:
    return cast(Node, found) if isinstance(found, Mapping) else None


def _nodes(found: object) -> Iterable[object]:
    return cast(Sequence[object], found) if isinstance(found, list) else ()


def _is_null(node: object) -> bool:
    return isinstance(node, Mapping) and cast(Node, node).get("type") in ("null", ["null"])


def _type_of(node: Node) -> str | None:
    said: object = node.get("type")
    names = set(cast(Sequence[str], said)) if isinstance(said, list) else {said}
    names -= {"null"}
    if names == {"integer", "number"}:
        return "number"
    if names == {None}:
        return _implied(node)
    return str(names.pop()) if len(names) == 1 else None


def _implied(node: Node) -> str | None:
    if "properties" in node:
        return "object"
    if "items" in node:
        return "array"
    values = [*_nodes(node.get("enum")), *([node["const"]] if "const" in node else [])]
    return "string" if values and all(isinstance(v, str) for v in values) else None


def _scalar(name: str, node: Node) -> Type:
    hint = node.get("connect.type")
    match name:
        case "boolean":
            return Scalar("BOOLEAN")
        case "integer":
            limits = (node.get("minimum"), node.get("maximum"))
            named = _BY_HINT.get(str(hint)) or _BY_RANGE.get(cast(tuple[int, int], limits))
            return Scalar(named if named in INTEGERS else "BIGINT")
        case "number":
            found = _decimal(node)
            return found or Scalar("FLOAT" if hint == REAL_HINTS["FLOAT"] else "DOUBLE")
        case "string" if node.get("title") != DECIMAL:
            if hint == "bytes" or node.get("contentEncoding") == "base64":
                return Scalar("BLOB")
            return Scalar(_BY_FORMAT.get(str(node.get("format")), "VARCHAR"))
        case _:
            return _TEXT


def _decimal(node: Node) -> Decimal | None:
    if node.get("title") != DECIMAL:
        return None
    digits = cast(Node, node.get("connect.parameters") or {})
    scale, precision = str(digits.get("scale")), str(digits.get("connect.decimal.precision", "38"))
    if not scale.isdigit() or not precision.isdigit():
        return None
    return Decimal(int(precision), int(scale)) if int(scale) <= int(precision) <= 38 else None
