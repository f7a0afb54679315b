"""What is wrong with the keys of topics that are tables, although every value alone is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, Items, Node, Scalar, brief
from kaflow_engine.model.spec import Path

_TRUE = {"true", "t", "yes", "y", "on", "1"}
_OF_EVENTS = {
    "key": "write primary_key: [<column>] for another key than that of the record",
    "history": "remove it: a table is made of the records in its topic",
    "lookup": "remove it: a table has no old versions; or list the topic under state.dimensions "
    "instead of table",
}
"""Keys that mean nothing for a table, and the way out."""


def keys_of_tables(tree: Entries) -> Iterator[ModelError]:
    """Some keys are for tables only, and some are for other topics only."""
    for path, said in inputs_of(tree):
        if is_table(said):
            yield from _beside_table(tree, path, said)
        else:
            yield from without_table(tree, path, str(path[-1]), said)
        yield from key_columns(tree, path, said)


def inputs_of(tree: Entries) -> Iterator[tuple[Path, Entries]]:
    """Yield what is said of each topic and of each source, and where."""
    for section in ("topics", "sources"):
        said = tree.get(section)
        for entry in said.entries if isinstance(said, Entries) else ():
            if isinstance(entry.value, Entries):
                yield (section, entry.key), entry.value


def is_table(topic: Node | None) -> bool:
    """Tell whether a topic is read as a table."""
    return isinstance(topic, Entries) and is_true(topic, "table")


def is_true(said: Entries, key: str) -> bool:
    """Tell whether a key is said to be true, in any of the words that specifications take."""
    return (_text(said, key) or "").lower() in _TRUE


def _beside_table(tree: Entries, path: Path, topic: Entries) -> Iterator[ModelError]:
    called = str(path[-1])
    name = brief(called)
    for key, hint in _OF_EVENTS.items():
        if is_said(topic, key) and _text(topic, key) != "current":
            text = f"'{key}' has no meaning for '{name}', which is a table"
            yield ModelError(text, place(tree, (*path, key)), hint)
    if _text(topic, "on_null") == "row":
        yield ModelError(
            f"'on_null: row' is only for events, and '{name}' is a table",
            place(tree, (*path, "on_null")),
            "remove it: a null value deletes the row of its key",
        )
    dimensions = tree.get("state", "dimensions")
    for i, item in enumerate(dimensions.items if isinstance(dimensions, Items) else ()):
        if isinstance(item, Scalar) and item.text == called:
            yield ModelError(
                f"topic '{name}' is both a table and in state.dimensions",
                place(tree, ("state", "dimensions", i)),
                "keep one of the two: events find the rows of a table that have a join key, of a "
                "dimension the last value under it, and only a table makes rows of its own",
            )
    if tree.get("state", "events", "overrides", called) is not None:
        yield ModelError(
            f"topic '{name}' is a table and in state.events.overrides",
            place(tree, ("state", "events", "overrides", called)),
            f"take it out; {path[0]}.{name}.retain says how long a row stays that nothing changes",
        )


def without_table(tree: Entries, path: Path, topic: str, said: Entries) -> Iterator[ModelError]:
    """Refuse keys of tables where none is read.

    Args:
        tree: The file.
        path: Where it is said how a topic is read.
        topic: Which one.
        said: What stands there.
    """
    if "table" in said.misspelled:
        return
    name = brief(str(path[-1]))
    keyed, changes = is_said(said, "primary_key"), is_said(said, "operation")
    if changes and not keyed:
        yield ModelError(
            f"'operation' of '{name}' needs a key whose row a record changes",
            place(tree, (*path, "operation")),
            "add primary_key: [<column>], or table: true where the key is that of the record",
        )
    elif keyed and not changes:
        yield ModelError(
            f"'primary_key' of '{name}' is only for tables",
            place(tree, (*path, "primary_key")),
            "add table: true, or operation; or remove primary_key: events need no key",
        )
    if is_said(said, "retain"):
        yield ModelError(
            f"'retain' of '{name}' is only for tables",
            place(tree, (*path, "retain")),
            f"add table: true; events are kept for state.events.overrides.{brief(topic)}",
        )


def key_columns(tree: Entries, path: Path, said: Entries) -> Iterator[ModelError]:
    """Refuse a key that names a column twice.

    Args:
        tree: The file.
        path: Where it is said how a topic is read.
        said: What stands there.
    """
    listed = said.get("primary_key")
    seen: set[str] = set()
    for i, item in enumerate(listed.items if isinstance(listed, Items) else ()):
        if not isinstance(item, Scalar) or item.text is None:
            continue
        if item.text.lower() in seen:
            yield ModelError(
                f"'primary_key' of '{brief(str(path[-1]))}' names '{brief(item.text)}' twice",
                place(tree, (*path, "primary_key", i)),
                "name each column once",
            )
        seen.add(item.text.lower())


def is_said(topic: Entries, key: str) -> bool:
    """Tell whether something stands under a key."""
    node = topic.get(key)
    if isinstance(node, Items):
        return bool(node.items)
    return node is not None and not (isinstance(node, Scalar) and node.text is None)


def _text(topic: Entries, key: str) -> str | None:
    node = topic.get(key)
    return node.text if isinstance(node, Scalar) else None
