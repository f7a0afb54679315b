"""Topics that are read as tables: their columns, and settings that do not fit them."""

from collections.abc import Iterator, Mapping, Sequence

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.chain_shapes import ChainShape

_IN_COLUMN = "column:"


def wrong_table_topics(
    spec: PipelineSpec, schemas: Mapping[str, Sequence[Column] | None]
) -> Iterator[ModelError]:
    """Yield an error for each column that a table needs and its topic does not have.

    Args:
        spec: What the author wrote.
        schemas: The columns of topics; None: not known yet.
    """
    for name, topic in spec.topics.items():
        columns = schemas.get(name)
        if not topic.table or columns is None:
            continue
        types = {column.name.lower(): column.type for column in columns}
        known = [column.name for column in columns]
        for i, key in enumerate(topic.primary_key):
            if key.lower() not in types:
                place = spec.place("topics", name, "primary_key", i)
                yield UnknownName("column", key, known, place)
        if not topic.primary_key and KEY in types:
            yield ModelError(
                f"table '{name}' has a column '{KEY}', which hides the key of its records",
                spec.place("topics", name, "table"),
                f"add primary_key: [{KEY}], or name another column there",
            )
        if topic.operation is None or not topic.operation.startswith(_IN_COLUMN):
            continue
        said, place = topic.operation[len(_IN_COLUMN) :], spec.place("topics", name, "operation")
        if said.lower() not in types:
            yield UnknownName("column", said, known, place)
        elif types[said.lower()] != "VARCHAR":
            yield ModelError(
                f"operation: column '{said}' of '{name}' is of type {types[said.lower()]}",
                place,
                "name a column of type VARCHAR that holds c, r, i, u or d",
            )


def wrong_settings(spec: PipelineSpec, chains: Sequence[ChainShape]) -> Iterator[ModelError]:
    """Yield an error for each setting that does not fit the tables that queries read."""
    for i, name in enumerate(spec.state.dimensions):
        for chain in chains:
            tables = [source.topic for source in chain.shape.sources if source.table]
            if tables and chain.shape.driving.topic == name:
                yield ModelError(
                    f"'{name}' is a dimension, and drives a join with table '{tables[0]}'",
                    spec.place("state", "dimensions", i),
                    f"declare topics: {name}: table: true, and remove it here; or remove it here "
                    "alone: its records are then events",
                )
                break
    if not all(chain.shape.is_table for chain in chains):
        return
    if spec.emission.type != "immediate":
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
