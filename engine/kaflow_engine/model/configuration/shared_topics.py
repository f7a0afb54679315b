"""`topics` of the configuration, as front ends take it."""

from collections.abc import Mapping
from typing import cast

from kaflow_engine.errors import Location
from kaflow_engine.model.config import Config
from kaflow_engine.model.durations import format_duration, is_duration
from kaflow_engine.model.files.tree import Entries, Entry, Node, from_plain
from kaflow_engine.model.pipelines.contract import SharedTopics
from kaflow_engine.model.spec import Path, Spec


def shared_topics(config: Config) -> SharedTopics:
    """Return what a configuration says of topics, each key with its place."""
    tree = _mapping({"topics": config.topics}, (), config)
    return SharedTopics(specs=config.topics, tree=tree)


def _node(value: object, path: Path, config: Config) -> Node:
    if isinstance(value, Spec):
        return _mapping(_said(value), path, config)
    if isinstance(value, Mapping):
        return _mapping(cast(Mapping[str, object], value), path, config)
    return from_plain(value, _place(path, config))


def _mapping(said: Mapping[str, object], path: Path, config: Config) -> Entries:
    below = {key: _node(value, (*path, key), config) for key, value in said.items()}
    entries = tuple(Entry(key=key, at=node.at, value=node) for key, node in below.items())
    return Entries(at=entries[0].at if entries else _place(path, config), entries=entries)


def _place(path: Path, config: Config) -> Location:
    return Location(config.origin(*map(str, path)))


def _said(spec: Spec) -> dict[str, object]:
    """Return what an author has said, as he has written it."""
    found: dict[str, object] = {}
    for name, field in type(spec).model_fields.items():
        if name not in spec.model_fields_set:
            continue
        value: object = getattr(spec, name)
        if isinstance(value, int) and is_duration(field.annotation, field.metadata):
            value = format_duration(value)
        found[field.alias or name] = value
    return found
