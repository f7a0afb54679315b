"""What is wrong with a pipeline file although every value alone is right.

A rule reads the tree, not the specification, so that it speaks up next to other mistakes.
"""

from collections.abc import Callable, Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, Items, Node, Scalar, brief
from kaflow_engine.model.formats import FORMATS
from kaflow_engine.model.specs import Path

Rule = Callable[[Entries], Iterator[ModelError]]

_OF_TOPIC = ("key", "format", "schema")
_OF_TABLE = ("partition", "interval")


def topic_in_two_roles(tree: Entries) -> Iterator[ModelError]:
    """A dimension is kept for ever, so a TTL for it contradicts itself."""
    dimensions = _texts(tree, "state", "dimensions")
    overrides = tree.get("state", "events", "overrides")
    for entry in overrides.entries if isinstance(overrides, Entries) else ():
        if entry.key in dimensions:
            topic = brief(entry.key)
            yield ModelError(
                f"topic '{topic}' is in both state.events.overrides and state.dimensions",
                entry.at,
                "take it out of one: a dimension is kept for ever, an event for its TTL",
            )


def keys_of_smart_emission(tree: Entries) -> Iterator[ModelError]:
    """`require` and `on_expiry` say what smart emission does."""
    emission = _text(tree, "emission", "type") or "immediate"
    if emission not in ("immediate", "final"):
        return
    for key in ("require", "on_expiry"):
        value = tree.get("emission", key)
        if value is None or (isinstance(value, Items) and not value.items):
            continue
        yield ModelError(
            f"emission.{key} is only for smart emission",
            place(tree, ("emission", key)),
            f"set emission.type to smart, or remove {key}",
        )


def schema_without_avro(tree: Entries) -> Iterator[ModelError]:
    """A schema describes Avro output."""
    if tree.get("output", "schema") is None:
        return
    form = _text(tree, "output", "format") or "json"
    if form in FORMATS and form != "avro":  # what the keys of output.schema say is an Avro record
        yield ModelError(
            "output.schema is only for Avro output",
            place(tree, ("output", "schema")),
            "set output.format to avro, or remove the schema",
        )


def fields_without_name(tree: Entries) -> Iterator[ModelError]:
    """A field of an Avro schema has a name and a type."""
    fields = tree.get("output", "schema", "fields")
    for index, field in enumerate(fields.items if isinstance(fields, Items) else ()):
        if not isinstance(field, Entries):
            continue
        for key in ("name", "type"):
            if field.get(key) is None:
                at = place(tree, ("output", "schema", "fields", index))
                hint = "write it as {name: <column>, type: <Avro type>}"
                yield ModelError(f"a field of output.schema has no '{key}'", at, hint)


def versions_of_dimensions(tree: Entries) -> Iterator[ModelError]:
    """Only a dimension has versions, and only `as_of` looks at old ones."""
    dimensions = _texts(tree, "state", "dimensions")
    topics = tree.get("topics")
    for entry in topics.entries if isinstance(topics, Entries) else ():
        path: Path = ("topics", entry.key)
        lookup = _text(tree, *path, "lookup") or "current"
        if lookup == "as_of" and entry.key not in dimensions:
            yield ModelError(
                f"'lookup: as_of' is only for dimensions, and '{brief(entry.key)}' is not one",
                place(tree, (*path, "lookup")),
                "add it to state.dimensions, or remove lookup",
            )
        kept = _kept_versions(tree, entry.key)
        if lookup == "current" and kept is not None:
            yield ModelError(
                f"{kept[-1]} has no meaning without 'lookup: as_of'",
                place(tree, kept),
                f"add 'lookup: as_of', or remove {kept[-1]}",
            )


def _kept_versions(tree: Entries, topic: str) -> Path | None:
    """Return the key that says how long versions are kept, if one does."""
    path = ("topics", topic, "history")
    if isinstance(tree.get(*path), Scalar):
        return path
    return (*path, "keep") if tree.get(*path, "keep") is not None else None


def null_values_of_dimensions(tree: Entries) -> Iterator[ModelError]:
    """A null value of a dimension deletes."""
    for topic in sorted(_texts(tree, "state", "dimensions")):
        path: Path = ("topics", topic, "on_null")
        if _text(tree, *path) == "row":
            yield ModelError(
                f"'on_null: row' is only for events, and '{brief(topic)}' is a dimension",
                place(tree, path),
                "remove it: a null value deletes the entry under its key; or take the topic out of "
                "state.dimensions",
            )


def one_topic_for_two_uses(tree: Entries) -> Iterator[ModelError]:
    """Rows and dead letters must be told apart."""
    topic = _text(tree, "output", "topic")
    if topic is not None and topic == _text(tree, "dead_letters", "topic"):
        yield ModelError(
            "dead_letters.topic is also output.topic",
            place(tree, ("dead_letters", "topic")),
            "give dead letters a topic of their own",
        )


def output_of_one_kind(tree: Entries) -> Iterator[ModelError]:
    """Rows go to a topic or into a table, and some keys belong to one of them."""
    output = tree.get("output")
    if not isinstance(output, Entries) or {"topic", "table"} & output.misspelled:
        return
    said = {entry.key for entry in output.entries}
    if not said & {"topic", "table"}:
        hint = "write topic: <topic>; the rows go there"
        yield ModelError("'output.topic' is required", place(tree, ("output",)), hint)
        return
    if said >= {"topic", "table"}:
        yield ModelError(
            "output.table and output.topic exclude each other",
            place(tree, ("output", "table")),
            "keep one; another pipeline can write the other",
        )
        return
    of_other, other = (_OF_TOPIC, "topic") if "table" in said else (_OF_TABLE, "table")
    for key in of_other:
        if key in said:
            yield ModelError(
                f"output.{key} is only for a {other}",
                place(tree, ("output", key)),
                f"remove it, or write to a {other}",
            )


RULES: tuple[Rule, ...] = (
    output_of_one_kind,
    topic_in_two_roles,
    keys_of_smart_emission,
    schema_without_avro,
    fields_without_name,
    versions_of_dimensions,
    null_values_of_dimensions,
    one_topic_for_two_uses,
)


def _text(tree: Entries, *path: str) -> str | None:
    node = tree.get(*path)
    return node.text if isinstance(node, Scalar) else None


def _texts(tree: Entries, *path: str) -> set[str]:
    node: Node | None = tree.get(*path)
    items = node.items if isinstance(node, Items) else ()
    return {item.text for item in items if isinstance(item, Scalar) and item.text is not None}
