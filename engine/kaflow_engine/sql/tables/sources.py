"""Topics after FROM and JOIN: events, tables, and changes of rows, which may become a table."""

from collections.abc import Sequence, Set
from dataclasses import replace

from kaflow_engine.model.columns import Column
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.scope import Relation, topic_relation
from kaflow_engine.sql.tables.joined import as_called, present
from kaflow_engine.sql.tables.names import ReadTopic
from kaflow_engine.sql.tables.operations import OP, change_of


def topic_rows(
    read: ReadTopic, alias: str, columns: Sequence[Column] | None, taken: Set[str]
) -> tuple[Flat, Relation]:
    """Return the rows of a topic, and what they are in the query.

    Args:
        read: How the topic is read.
        alias: What the author calls it.
        columns: Its own; None: they are not known yet.
        taken: Aliases that sources beside it have, in lower case.
    """
    flat = Flat(aliases=set(taken), null_rows=read.null_rows)
    unique = flat.unique(alias)
    flat.sources.append((unique, read.topic))
    if read.reading is not None:
        flat.readings[unique] = read.reading
    relation = topic_relation(
        alias, unique, read.topic, None if columns is None else tuple(columns)
    )
    if read.key is not None:
        keys = flat.tables if read.operation is None else flat.changes
        keys[unique] = as_called(read.key, columns)
    if read.kind == "dimension":
        flat.dimensions.add(unique)
    if read.operation is not None:
        relation.record[OP] = change_of(unique, read.operation)
    return flat, replace(relation, present=present(flat))


def keep_rows(flat: Flat) -> None:
    """Make changes of rows a table: the engine keeps the row of each key.

    Rows that have looked up others, or of which lists are unnested, stay changes.
    """
    if flat.is_upsert and not flat.joins and not flat.unnests:
        flat.tables.update(flat.changes)


def kept_relation(flat: Flat, relation: Relation) -> Relation:
    """Make changes that are joined a table, and return what that is in the query."""
    keep_rows(flat)
    return replace(relation, present=present(flat))
