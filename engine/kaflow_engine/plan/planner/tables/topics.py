"""Topics that are read as tables: their columns, and settings that do not fit them."""

from collections.abc import Iterator, Mapping, Sequence

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.chain_shapes import ChainShape, is_timed
from kaflow_engine.sql.shape import SourceShape

_IN_COLUMN = "column:"


def wrong_table_topics(
    spec: PipelineSpec, schemas: Mapping[str, Sequence[Column] | None]
) -> Iterator[ModelError]:
    """Yield an error for each column that a table needs and its topic does not have.

    Args:
        spec: What the author wrote.
        schemas: The columns of topics; None: not known yet.
    """
    for name, topic in spec.said_of_topics.items():
        yield from _wrong_columns(spec, ("topics", name), name, topic, schemas.get(name))
    for name, reading in spec.readings.items():
        topic = reading.topic or ""
        said = spec.read_as(topic, name)
        yield from _wrong_columns(spec, ("relations", name), topic, said, schemas.get(topic))


def _wrong_columns(
    spec: PipelineSpec,
    path: Path,
    name: str,
    topic: TopicSpec,
    columns: Sequence[Column] | None,
) -> Iterator[ModelError]:
    if not (topic.table or topic.operation) or columns is None:
        return
    types = {column.name.lower(): column.type for column in columns}
    known = [column.name for column in columns]
    for i, key in enumerate(topic.primary_key):
        if key.lower() not in types:
            yield UnknownName("column", key, known, spec.place(*path, "primary_key", i))
    if not topic.primary_key and KEY in types:
        yield ModelError(
            f"table '{name}' has a column '{KEY}', which hides the key of its records",
            spec.place(*path, "table"),
            f"add primary_key: [{KEY}], or name another column there",
        )
    if topic.operation is None or not topic.operation.startswith(_IN_COLUMN):
        return
    said, place = topic.operation[len(_IN_COLUMN) :], spec.place(*path, "operation")
    if said.lower() not in types:
        yield UnknownName("column", said, known, place)
    elif types[said.lower()] != "VARCHAR":
        yield ModelError(
            f"operation: column '{said}' of '{name}' is of type {types[said.lower()]}",
            place,
            "name a column of type VARCHAR that holds c, r, i, u or d",
        )


def _changes_alone(spec: PipelineSpec, chains: Sequence[ChainShape]) -> Iterator[ModelError]:
    """A null value is a delete to changes, and no row to events: a topic is read in one way."""
    read = dict.fromkeys(s for chain in chains for s in chain.shape.read)
    for topic in dict.fromkeys(source.topic for source in read if source.changes):
        ways = {(s.reading, s.changes) for s in read if s.topic == topic}
        if len(ways) > 1:
            reading = next(s.reading for s in read if s.topic == topic and s.changes)
            path = ("relations", reading) if reading else ("topics", topic)
            yield ModelError(
                f"topic '{topic}' is read as changes here, and in another way, too",
                spec.place(*path, "operation"),
                "add table: true here; or read the topic the other way in a pipeline of its own",
            )


def _kept_for_ever(spec: PipelineSpec, chains: Sequence[ChainShape]) -> Iterator[ModelError]:
    """Rows that events look up stay until they are deleted."""
    sides = [s for chain in chains if not chain.shape.is_table for s in chain.shape.read[1:]]
    sides += [
        each.shape.driving for chain in chains for each in chain.branches if each.is_looked_up
    ]
    read = dict.fromkeys((s.topic, s.reading) for s in sides if s.table)
    for topic, reading in read:
        if spec.read_as(topic, reading).retain is not None:
            path = ("relations", reading) if reading else ("topics", topic)
            yield ModelError(
                f"events look up table '{reading or topic}', whose rows 'retain' would delete: a "
                "row that is looked up stays until a record deletes it",
                spec.place(*path, "retain"),
                "look up a reading of the topic without retain",
            )


def _of_dimensions(spec: PipelineSpec, chains: Sequence[ChainShape]) -> Iterator[ModelError]:
    """Old versions of a dimension, and its history, are for events that look it up."""
    read = (source for chain in chains for source in chain.shape.read if source.key)
    for topic in dict.fromkeys(source.topic for source in read):
        said = spec.topic(topic)
        for key in ("lookup", "history"):
            if key in said.model_fields_set and getattr(said, key) != "current":
                yield ModelError(
                    f"'{key}' has no meaning for dimension '{topic}' where it is joined to tables: "
                    "there it is one, which has the rows of its topic and no old ones",
                    spec.place("topics", topic, key),
                    "remove it; or join the dimension to events in a pipeline of their own",
                )


def _is_table(source: SourceShape) -> bool:
    """Tell whether a source is a table of a topic, by whatever columns its rows are found."""
    return source.table or (source.query is not None and not source.query.groups)


def wrong_settings(spec: PipelineSpec, chains: Sequence[ChainShape]) -> Iterator[ModelError]:
    """Yield an error for each setting that does not fit the tables that queries read."""
    yield from _kept_for_ever(spec, chains)
    yield from _changes_alone(spec, chains)
    yield from _of_dimensions(spec, chains)
    for i, name in enumerate(spec.state.dimensions):
        for chain in chains:
            tables = [s.topic or s.called for s in chain.shape.sources if _is_table(s)]
            if tables and chain.shape.driving.topic == name and not chain.shape.is_table:
                yield ModelError(
                    f"'{name}' is a dimension, and drives a join with table '{tables[0]}'",
                    spec.place("state", "dimensions", i),
                    f"declare topics: {name}: table: true, and remove it here; or remove it here "
                    "alone: its records are then events",
                )
                break
    if not all(chain.shape.is_table for chain in chains):
        return
    windows = any(is_timed(branch.shape) for chain in chains for branch in chain.branches)
    if spec.emission.type != "immediate" and not (spec.emission.type == "final" and windows):
        yield ModelError(
            f"'{spec.emission.type}' emission is for events, and this pipeline reads tables",
            spec.place("emission", "type"),
            "remove it: groups of a table change with its rows, and none is final"
            if spec.emission.type == "final"
            else "remove it: a change of a table leaves at once; WHERE x IS NOT NULL keeps "
            "incomplete rows back",
        )
    if spec.on_dimension_update == "reemit":
        yield ModelError(
            "'on_dimension_update: reemit' is for events, and this pipeline reads tables",
            spec.place("on_dimension_update"),
            "remove it: a change of either table of a join changes its rows",
        )
