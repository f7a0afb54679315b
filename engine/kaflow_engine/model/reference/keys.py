"""The keys of each kind of source, output, relation and connection: what each takes, and means."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kaflow_engine.model.durations import format_duration, is_duration
from kaflow_engine.model.outputs.connection_specs import (
    ClickHouseConnection,
    CommandConnection,
    IcebergConnection,
    MySQLConnection,
    PostgresConnection,
    WebhookConnection,
)
from kaflow_engine.model.outputs.output_specs import ListedPart, SinkSpec
from kaflow_engine.model.outputs.sink_specs import AnyOutput
from kaflow_engine.model.query_settings import QuerySettings
from kaflow_engine.model.relations.transform_specs import AnyRelation, TransformSpec
from kaflow_engine.model.sources.any_source import AnySource
from kaflow_engine.model.sources.source_spec import SourceSpec

Section = Literal["sources", "outputs", "relations", "connections"]

CONNECTIONS: Mapping[str, type[BaseModel]] = {
    "clickhouse": ClickHouseConnection,
    "command": CommandConnection,
    "iceberg": IcebergConnection,
    "mysql": MySQLConnection,
    "postgres": PostgresConnection,
    "webhook": WebhookConnection,
}
PLUGINS = "<namespace>.<name>"
_PYSPARK = "pyspark:<format>"
_EVERY = "all"
_NAMES: Mapping[Any, str] = {
    bool: "`true` or `false`",
    int: "a whole number",
    float: "a number",
    str: "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key."""

    name: str
    """With those that it stands under, as `signature.secret`."""
    takes: str
    default: str
    """Empty: it is required, or nothing where `takes` says so."""
    is_required: bool
    about: str
    """What the specification says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind, and the keys that it has of its own."""

    section: Section
    type: str
    """`all`: what all of a section have in common."""
    about: str
    keys: tuple[Key, ...]


def kinds() -> tuple[Kind, ...]:
    """Return all kinds, section by section."""
    outputs = {**_shared("outputs", SinkSpec), **_members(AnyOutput, "outputs")}
    return (
        *{**_shared("sources", SourceSpec), **_members(AnySource, "sources")}.values(),
        *outputs.values(),
        *{**_shared("relations", TransformSpec), **_members(AnyRelation, "relations")}.values(),
        *(
            Kind(section="connections", type=name, about=_about(spec), keys=_keys(spec, ()))
            for name, spec in CONNECTIONS.items()
        ),
    )


_BASES: Mapping[Section, tuple[type[BaseModel], ...]] = {
    "sources": (SourceSpec,),
    "outputs": (SinkSpec, ListedPart),
    "relations": (TransformSpec,),
}


def _shared(section: Section, base: type[BaseModel]) -> dict[str, Kind]:
    keys = [key for each in _BASES[section] for key in _keys(each, _elsewhere(each))]
    return {_EVERY: Kind(section=section, type=_EVERY, about=_about(base), keys=tuple(keys))}


def _elsewhere(base: type[BaseModel]) -> set[str]:
    """Return the keys of a base that belong to queries, wherever they stand."""
    return {*QuerySettings.model_fields} if issubclass(base, QuerySettings) else set()


def _members(union: Any, section: Section) -> dict[str, Kind]:
    """Return the kinds of a union, by their types; those without one are described elsewhere."""
    bases = _BASES[section]
    shared = {name for base in bases for name in base.model_fields}
    found: dict[str, Kind] = {}
    for member in get_args(get_args(union)[0]):
        spec: type[BaseModel] = get_args(member)[0]
        kind = _type(spec)
        if kind is not None:
            common = shared if issubclass(spec, bases) else set[str]()
            keys = _keys(spec, {"type", *common})
            found[kind] = Kind(section=section, type=kind, about=_about(spec), keys=keys)
    return dict(sorted(found.items()))


def _type(spec: type[BaseModel]) -> str | None:
    field = spec.model_fields.get("type")
    if field is None:
        return None
    if get_origin(field.annotation) is Literal:
        return get_args(field.annotation)[0]
    return _PYSPARK if spec.__name__.startswith("PySpark") else PLUGINS


def _keys(
    spec: type[BaseModel], without: Sequence[str] | set[str], before: str = ""
) -> tuple[Key, ...]:
    return tuple(_listed(spec, {"type", *without}, before))


def _listed(spec: type[BaseModel], without: set[str], before: str) -> Iterator[Key]:
    texts = field_texts(spec)
    for name, field in spec.model_fields.items():
        if name in without or field.exclude:
            continue
        called = before + (field.alias or name)
        yield Key(
            name=called,
            takes=_takes(field.annotation, field),
            default=_default(field),
            is_required=field.is_required(),
            about=texts.get(name, ""),
        )
        inside = _spec_of(field.annotation)
        if inside is not None:
            yield from _listed(inside, set(), f"{called}.")


@lru_cache(maxsize=256)
def field_texts(spec: type[BaseModel]) -> Mapping[str, str]:
    """Return what stands under the fields of a specification and of those that it extends."""
    found: dict[str, str] = {}
    for each in reversed(spec.__mro__):
        if not issubclass(each, BaseModel) or each is BaseModel:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    found[name] = _in_words(said)
                case _:
                    pass
    return found


def _in_words(said: str) -> str:
    """Return what stands under a field as an author may read it, who writes no None.

    >>> _in_words("How long, in ms; None: without end.")
    'How long; without it: without end.'
    """
    return " ".join(said.split()).replace(", in ms", "").replace("; None: ", "; without it: ")


def _about(spec: type[BaseModel]) -> str:
    return " ".join((spec.__doc__ or "").partition("\n\n")[0].split())


def _spec_of(annotation: Any) -> type[BaseModel] | None:
    """Return the specification that a key takes, if it takes one; those of lists are elsewhere."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (dict, tuple):
        return None
    found = [each for each in map(_spec_of, get_args(annotation)) if each is not None]
    return found[0] if len(found) == 1 else None


def _takes(annotation: Any, field: FieldInfo | None = None) -> str:
    if is_duration(annotation, field.metadata if field else ()):
        return "a duration"
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a mapping"
    if origin is dict:
        return "a mapping"
    if origin is tuple:
        return "a list"
    if origin is Annotated:
        return _takes(parts[0])
    if parts:
        named = [_takes(part) for part in parts if part is not NoneType]
        return " or ".join(dict.fromkeys(named))
    return _NAMES.get(annotation, "text")


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if field.is_required() or value is None or value in ((), {}, ""):
        return ""
    if isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return format_duration(value) if is_duration(field.annotation, field.metadata) else f"{value}"
