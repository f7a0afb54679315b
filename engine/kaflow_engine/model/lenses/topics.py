"""What is known of the topics of a processor: its YAML says it, else the configuration."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.files.tree import Entries, Entry, Node, find, from_plain
from kaflow_engine.model.key_formats import KEY_TYPES, TEXT, KeyFormat, of_value, window_of
from kaflow_engine.model.lenses.lowering.sources import Declared
from kaflow_engine.model.lenses.specs import struct_type
from kaflow_engine.model.sources.topic_specs import TopicSchemaSpec
from kaflow_engine.model.spec import Path

Specs = Mapping[str, TopicSchemaSpec]
"""By topic."""
TOPICS = "topics"
"""The key under which files say something of them."""
_OF_PROCESSORS = ("key_columns", "nullable")
"""What a pipeline file does not say of topics."""


def together(own: Specs, shared: Specs) -> Specs:
    """Return what is known of topics: what a processor says of one stands over the configuration,
    key by key."""
    both = {
        name: shared[name].model_copy(
            update={key: getattr(each, key) for key in each.model_fields_set}
        )
        for name, each in own.items()
        if name in shared
    }
    return {**shared, **own, **both}


def topics_tree(own: Node | None, specs: Specs, shared: Entries, read: Collection[str]) -> Node:
    """Return what a pipeline file would say of topics.

    Args:
        own: What the processor's YAML says; None: nothing.
        specs: The same with what the configuration says.
        shared: What the configuration says, under `topics`.
        read: The topics that the processor reads.
    """
    if own is not None and not isinstance(own, Entries):
        return own
    said = {entry.key: entry for entry in own.entries} if own is not None else {}
    beside = shared.get(TOPICS)
    for entry in beside.entries if isinstance(beside, Entries) else ():
        if entry.key in read:
            said[entry.key] = _laid_over(entry, said.get(entry.key))
    at = own.at if own is not None else shared.at
    return Entries(at=at, entries=tuple(_plain(said.values(), specs)))


def _laid_over(shared: Entry, own: Entry | None) -> Entry:
    if own is None or not (isinstance(own.value, Entries) and isinstance(shared.value, Entries)):
        return own or shared
    known = {entry.key for entry in own.value.entries}
    others = (entry for entry in shared.value.entries if entry.key not in known)
    return replace(own, value=replace(own.value, entries=(*others, *own.value.entries)))


def wrong_topics(specs: Specs, tree: Entries) -> Iterator[ModelError]:
    """Yield what is wrong with what is said of topics, which no single key shows.

    Args:
        specs: What is said.
        tree: The same, under `topics`.
    """
    for name, topic in specs.items():
        known = topic.columns or {}
        for place, field in enumerate(topic.nullable):
            if field.partition(".")[0].lower() not in map(str.lower, known):
                at = _place(tree, (name, "nullable", place))
                yield UnknownName("column", field, known, at)
        plain = topic.key_format in ("int", "long", "bytes")
        if topic.key_columns and (plain or window_of(topic.key_format) is not None):
            yield ModelError(
                f"keys of '{name}' are {topic.key_format}, and have no fields",
                _place(tree, (name, "key_columns")),
                "remove key_columns: such a key is one value, _key",
            )


def _place(tree: Entries, path: Path) -> Location:
    node = find(tree, (TOPICS, *path))
    return node.at if node is not None else tree.at


def declared(topics: Specs) -> Mapping[str, Declared]:
    """Return what the SQL of a processor may know of topics."""
    return {
        name: Declared(
            format=topic.format,
            key=_key_fields(topic),
            key_form=_struct_form(topic),
            whole=next(iter(topic.columns or {"value": ""})) if topic.format == "raw" else None,
            columns=None if topic.columns is None else frozenset(map(str.lower, topic.columns)),
            nullable=frozenset(map(str.lower, topic.nullable)),
        )
        for name, topic in topics.items()
    }


def _key_fields(topic: TopicSchemaSpec) -> Mapping[str, str] | None:
    """Return the fields of keys, with a window those of that."""
    window = window_of(topic.key_format)
    if window is None:
        return topic.key_columns or None
    kind = KEY_TYPES[of_value(topic.key_format)] or topic.key_type or TEXT
    times = ["window.start", *(["window.end"] if window == "session" else [])]
    return {"value": kind, **dict.fromkeys(times, "BIGINT")}


def _struct_form(topic: TopicSchemaSpec) -> KeyFormat | None:
    match topic.key_format:
        case "json" | "avro" if topic.key_columns:
            return topic.key_format
        case form:
            return form if window_of(form) is not None else None


def _plain(topics: Iterable[Entry], specs: Specs) -> Iterator[Entry]:
    for entry in topics:
        if not isinstance(entry.value, Entries):
            yield entry
            continue
        kept = [each for each in entry.value.entries if each.key not in _OF_PROCESSORS]
        spec = specs.get(entry.key)
        if spec is not None and spec.key_columns and _struct_form(spec) and spec.key_type is None:
            kind = from_plain(struct_type(spec.key_columns), entry.at)
            kept.append(Entry(key="key_type", at=entry.at, value=kind))
        yield replace(entry, value=replace(entry.value, entries=tuple(kept)))
