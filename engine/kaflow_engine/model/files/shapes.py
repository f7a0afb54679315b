"""The keys that each specification has in a file, and what may stand below each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import Discriminator
from pydantic.fields import FieldInfo

from kaflow_engine.model.spec import Path, Spec

EACH = "*"
"""In a path: every item of a list, or every name of a mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a kind of file may hold, beyond what its specification says."""

    noun: str
    """What errors call an unknown key."""
    later: Mapping[type[Spec], frozenset[str]]
    """Keys that are planned, by the specification they will belong to."""
    free: frozenset[Path] = frozenset()
    """Paths below which values keep the type that YAML gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What stands below a key: a specification, a mapping of names, a list, or a plain value."""

    spec: type[Spec] | None = None
    kinds: "Kinds | None" = None
    """What else a specification may be, where its key `type` says it."""
    values: "Inside | None" = None
    """What stands below each name of a mapping of names."""
    items: "Inside | None" = None
    """What each item of a list is."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """Specifications by the values of their key `type`."""

    known: tuple[tuple[str, type[Spec]], ...]
    plugins: tuple[tuple[str, type[Spec]], ...] = ()
    """Of kinds that packages offer, by what their names have, such as a dot."""

    def of(self, kind: str) -> type[Spec] | None:
        """Return the specification of a kind; None: there is no such kind."""
        plugins = (spec for mark, spec in self.plugins if mark in kind)
        return dict(self.known).get(kind) or next(plugins, None)


@cache
def file_keys(spec: type[Spec]) -> Mapping[str, tuple[str, str]]:
    """Return every accepted spelling of a key → (the key as files spell it, the field)."""
    keys: dict[str, tuple[str, str]] = {}
    for name, field in spec.model_fields.items():
        if field.exclude:
            continue
        key = field.alias or name
        keys[key] = (key, name)
        if not name.endswith("_"):
            keys[name] = (key, name)
    return keys


def inside_of(field: FieldInfo) -> Inside:
    """Return what stands below a field."""
    found = inside(field.annotation)
    chosen = any(isinstance(mark, Discriminator) for mark in field.metadata)
    return replace(found, kinds=_kinds(field.annotation)) if chosen else found


def inside(annotation: object) -> Inside:
    """Return what stands below a field of this type."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return Inside(spec=annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return Inside(values=inside(arguments[1]))
    if origin is tuple and inside(arguments[0]) != Inside():
        return Inside(items=inside(arguments[0]))
    if origin is Annotated:
        found = inside(arguments[0])
        chosen = any(isinstance(mark, Discriminator) for mark in arguments[1:])
        return replace(found, kinds=_kinds(arguments[0])) if chosen else found
    if origin in (Union, UnionType):
        found = [inside(part) for part in arguments]
        return next((part for part in found if part != Inside()), Inside())
    return Inside()


def _kinds(union: object) -> Kinds:
    """Return what the members of a union are called in files."""
    found: dict[str, type[Spec]] = {}
    plugins: list[tuple[str, type[Spec]]] = []
    for member in get_args(union):
        spec = inside(member).spec
        if spec is None or "type" not in spec.model_fields:
            continue  # what it is without a type
        kind = spec.model_fields["type"].annotation
        if kind is str:
            plugins.append((getattr(spec, "mark", "."), spec))
        found |= dict.fromkeys(_literals(kind), spec)
    return Kinds(tuple(found.items()), tuple(plugins))


def _literals(annotation: object) -> Iterator[str]:
    for part in get_args(annotation):
        if isinstance(part, str):
            yield part
        else:
            yield from _literals(part)
