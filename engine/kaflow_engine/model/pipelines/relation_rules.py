"""What is wrong with the keys of relations, although every value alone is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, Items, Scalar, brief
from kaflow_engine.model.pipelines.table_rules import (
    is_said,
    is_table,
    key_columns,
    without_table,
)
from kaflow_engine.model.query_settings import OF_QUERIES
from kaflow_engine.model.relations.relation_specs import OF_READINGS, OF_ROWS
from kaflow_engine.model.spec import Path

_KINDS = ("query", "topic", "from")
_HINT = (
    "write query: SELECT … FROM …, topic: <topic> to read one in another way, or from: <relation> "
    "with as: table for the last row of each key, or as: append for each change of a table"
)


def keys_of_relations(tree: Entries) -> Iterator[ModelError]:
    """A relation is a query or a reading, and some keys belong to one of them."""
    relations = tree.get("relations")
    named = relations.entries if isinstance(relations, Entries) else ()
    for entry in named:
        if not isinstance(entry.value, Entries) or set(_KINDS) & entry.value.misspelled:
            continue
        path: Path = ("relations", entry.key)
        if is_said(entry.value, "type"):
            continue  # a transform has keys of its own
        if is_said(entry.value, "batch"):
            yield from _of_runs(tree, path, entry.value)
            continue
        said = [key for key in _KINDS if is_said(entry.value, key)]
        if len(said) != 1:
            yield ModelError(
                f"the relation '{brief(entry.key)}' "
                + (f"has both {said[0]} and {said[1]}" if said else "says nothing to read"),
                place(tree, (*path, said[-1]) if said else path),
                _HINT,
            )
            continue
        yield from _of_others(tree, path, entry.value, said[0])
        if said == ["topic"]:
            yield from _of_reading(tree, path, entry.value)
        elif said == ["from"]:
            yield from _of_rows(tree, path, entry.value, {each.key.lower() for each in named})


def _of_runs(tree: Entries, path: Path, runs: Entries) -> Iterator[ModelError]:
    """Runs of rows have a query and what it reads, and nothing of other relations."""
    name = brief(str(path[-1]))
    hints = {
        "from": "add from: <relation or topic>; the query reads its rows as batch",
        "query": "add query: SELECT … FROM batch",
    }
    for key, hint in hints.items():
        if not is_said(runs, key):
            text = f"runs of rows '{name}' have no {key}"
            yield ModelError(text, place(tree, (*path, "batch")), hint)
    for key in ("topic", *OF_QUERIES, *OF_READINGS, *OF_ROWS):
        if is_said(runs, key):
            yield ModelError(
                f"'{key}' of '{name}' does not go with runs of rows",
                place(tree, (*path, key)),
                "remove it, or remove batch; another relation may say it of the rows below",
            )


def _of_others(tree: Entries, path: Path, relation: Entries, kind: str) -> Iterator[ModelError]:
    """Refuse keys that belong to another kind of relation."""
    name = brief(str(path[-1]))
    own = {"query": OF_QUERIES, "topic": OF_READINGS, "from": OF_ROWS}[kind]
    kinds = (
        ("queries", OF_QUERIES, "write it at the query with the GROUP BY or the join"),
        ("readings of topics", OF_READINGS, "write topic: <topic> for it, or remove it"),
        ("readings of relations", OF_ROWS, "write from: <relation> for it, or remove it"),
    )
    for whose, keys, hint in kinds:
        for key in keys if keys != own else ():
            if not is_said(relation, key):
                continue
            text = f"'{key}' of '{name}' is only for {whose}"
            if (kind, key) == ("query", "event_time"):
                text += ": rows of a query have the time of the records that they are made of"
                hint = (
                    "write a reading, {topic: <topic>, event_time: <column>}, and its name after "
                    "FROM: the watermark then follows that column, too"
                )
            yield ModelError(text, place(tree, (*path, key)), hint)


def _of_rows(tree: Entries, path: Path, reading: Entries, known: set[str]) -> Iterator[ModelError]:
    name = brief(str(path[-1]))
    of, way = (_text(reading, key) for key in ("from", "as"))
    if of is not None and of.lower() not in known:
        yield ModelError(
            f"'{name}' reads '{brief(of)}', which is no relation of this pipeline",
            place(tree, (*path, "from")),
            "write topic: <topic> to read a topic in another way",
        )
    if way == "append" and is_said(reading, "key"):
        yield ModelError(
            f"'key' of '{name}' is only for as: table",
            place(tree, (*path, "key")),
            "remove it: each change of a row is a row of its own",
        )
    elif way == "table" and is_said(reading, "deletes"):
        yield ModelError(
            f"'deletes' of '{name}' is only for as: append",
            place(tree, (*path, "deletes")),
            "remove it: a row that goes is gone from the table",
        )
    elif way is None and "as" not in reading.misspelled:
        yield ModelError(
            f"'{name}' does not say as what '{brief(of or '')}' is read",
            place(tree, (*path, "from")),
            "write as: table and key: [<column>], or as: append; or name the relation itself after "
            "FROM",
        )
    elif way == "table" and not is_said(reading, "key") and "key" not in reading.misspelled:
        yield ModelError(
            f"the table '{name}' has no key",
            place(tree, (*path, "as")),
            "write key: [<column>]: of each key the last row is the row of the table",
        )


def _of_reading(tree: Entries, path: Path, reading: Entries) -> Iterator[ModelError]:
    called = _text(reading, "topic") or ""
    if is_table(reading):
        yield from _beside_events(tree, path, called)
    else:
        yield from without_table(tree, path, called, reading)
    yield from key_columns(tree, path, reading)


def _beside_events(tree: Entries, path: Path, topic: str) -> Iterator[ModelError]:
    """What is said of a topic must fit a table, too, where one reads it as such."""
    name, called = brief(str(path[-1])), brief(topic)
    dimensions = tree.get("state", "dimensions")
    for i, item in enumerate(dimensions.items if isinstance(dimensions, Items) else ()):
        if isinstance(item, Scalar) and item.text == topic:
            yield ModelError(
                f"topic '{called}' is both the table '{name}' and in state.dimensions",
                place(tree, ("state", "dimensions", i)),
                f"keep one of the two: '{name}' is looked up by its key as well",
            )
    said = tree.get("topics", topic)
    if not isinstance(said, Entries):
        return
    null = said.get("on_null")
    if isinstance(null, Scalar) and null.text == "row":
        yield ModelError(
            f"'on_null: row' of '{called}' is only for events, and '{name}' reads it as a table",
            place(tree, ("topics", topic, "on_null")),
            "remove it: a null value deletes the row of its key",
        )
    if is_said(said, "history"):
        yield ModelError(
            f"'history' of '{called}' does not go with '{name}', which reads it as a table",
            place(tree, ("topics", topic, "history")),
            "remove it: a table is made of the records in its topic",
        )


def _text(relation: Entries, key: str) -> str | None:
    node = relation.get(key)
    return node.text if isinstance(node, Scalar) else None
