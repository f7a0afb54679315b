"""The query of a pipeline together with its relations: the topics it reads, and its shape."""

from dataclasses import replace

from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.read import read_select
from kaflow_engine.sql.relations import NamedQuery, read_relations, topics_behind
from kaflow_engine.sql.scope import Schemas
from kaflow_engine.sql.shape import QueryShape


def pipeline_topics(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the topics that a pipeline reads, in order of appearance; no columns are needed.

    Raises:
        ModelError: The query or a relation cannot be parsed, or relations do not fit together.
    """
    start = spec.place("query")
    query = parse_query(spec.query, start)
    return topics_behind(query, read_relations(query, start, named_queries(spec)))


def pipeline_shape(spec: PipelineSpec, schemas: Schemas) -> QueryShape:
    """Read the query of a pipeline into its shape, with its relations merged into it.

    `AS _key` is the key of records where `output.key` is not given.

    Raises:
        ModelError: As `pipeline_topics`, or a query cannot run on a stream.
        NeedsSchema: Columns of a topic are needed that are not known yet.
    """
    start = spec.place("query")
    query = parse_query(spec.query, start)
    relations = read_relations(query, start, named_queries(spec))
    shape = read_select(query, schemas, start, relations)
    if spec.output.topic is not None and spec.output.key is None:
        return shape
    return replace(  # where the key is given, or rows have none, `AS _key` is a column like others
        shape, outputs=tuple(replace(output, is_key=False) for output in shape.outputs)
    )


def named_queries(spec: PipelineSpec) -> tuple[NamedQuery, ...]:
    """Return the relations of a pipeline with the places of their SQL."""
    return tuple(
        NamedQuery(
            name=name,
            sql=relation.query,
            at=spec.place("relations", name),
            start=spec.place("relations", name, "query"),
        )
        for name, relation in spec.relations.items()
    )
