"""The queries of a pipeline together with its relations: the topics they read, and their shapes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, Problems, UnknownName
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.output_specs import Write
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.model.specs import PipelineSpec, TopicSpec
from kaflow_engine.sql.parse import output_names, parse_query
from kaflow_engine.sql.read import read_branches
from kaflow_engine.sql.relations import (
    NamedQuery,
    check_relations,
    counted_from,
    parse_relations,
    topics_behind,
)
from kaflow_engine.sql.scope import NeedsSchema, Schemas
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.tables.filters import with_source_filters


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The query of an output, with the relations as it may name them."""

    write: Write
    tree: exp.Query
    start: Location
    relations: dict[str, exp.Query]


def pipeline_topics(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the topics that a pipeline reads, in order of appearance; no columns are needed.

    Raises:
        ModelError: A query or a relation cannot be parsed, or relations do not fit together.
    """
    found = (topics_behind(each.tree, each.relations) for each in _read(spec))
    return tuple(dict.fromkeys(topic for topics in found for topic in topics))


def pipeline_shapes(spec: PipelineSpec, schemas: Schemas) -> tuple[tuple[QueryShape, ...], ...]:
    """Read the query of each output into the shapes of its branches, with relations merged into it.

    `AS _key` is the key of records where `output.key` is not given.

    Raises:
        ModelError: As `pipeline_topics`, or a query cannot run on a stream.
        NeedsSchema: Columns of a topic are needed that are not known yet.
    """
    found: list[tuple[QueryShape, ...]] = []
    wrong: list[ModelError] = []
    unknown: list[NeedsSchema] = []
    for each in _read(spec):
        try:
            branches = read_branches(
                each.tree,
                schemas,
                each.start,
                each.relations,
                lambda topic: spec.topic(topic).event_time,
                lambda topic: table_key(spec.topic(topic)),
            )
        except NeedsSchema as notice:
            unknown.append(notice)
        except ModelError as error:
            wrong.append(error)
        else:
            found.append(tuple(_keyed(each.write, shape) for shape in branches))
    raise_all(_once(wrong))
    if unknown:
        raise unknown[0]
    return with_source_filters(found)


def table_key(topic: TopicSpec) -> tuple[str, ...] | None:
    """Return the columns that are the key of a topic which is read as a table; None of events."""
    return (topic.primary_key or (KEY,)) if topic.table else None


def _keyed(write: Write, shape: QueryShape) -> QueryShape:
    """Where the key is given, or rows have none, `AS _key` is a column like others."""
    if write.output.topic is not None and write.output.key is None:
        return shape
    columns = tuple(replace(output, is_key=False) for output in shape.outputs)
    return replace(shape, outputs=columns)


def names_written(write: Write) -> tuple[str, ...] | None:
    """Return the columns of an output as far as the text of its query says them."""
    return None if write.query is None else output_names(write.query)


def _once(wrong: Sequence[ModelError]) -> list[ModelError]:
    """Leave out what is wrong in a relation and was found through another output, too."""
    found: dict[tuple[str, str], ModelError] = {}
    for error in wrong:
        for one in error.errors if isinstance(error, Problems) else (error,):
            found.setdefault((str(one.at), one.message), one)
    return list(found.values())


def _read(spec: PipelineSpec) -> list[_Read]:
    relations = _named_queries(spec)
    trees = parse_relations(relations)
    queries: list[tuple[Write, exp.Query, Location]] = []
    wrong: list[ModelError] = []
    for write in spec.writes:
        start = spec.place(*write.query_at)
        try:
            queries.append((write, _tree(write, start, relations), start))
        except ModelError as error:
            wrong.append(error)
    raise_all(wrong)
    check_relations([tree for _, tree, _ in queries], relations, trees)
    return [
        _Read(
            write=write,
            tree=tree,
            start=start,
            relations=counted_from(start, relations, trees),
        )
        for write, tree, start in queries
    ]


def _tree(write: Write, start: Location, relations: Sequence[NamedQuery]) -> exp.Query:
    if write.query is not None:
        return parse_query(write.query, start)
    name = write.relation or ""
    known = [relation.name for relation in relations]
    exact = name.lower() in {each.lower() for each in known}
    if not exact and get_close_matches(name, known, n=1, cutoff=0.75):
        raise UnknownName("relation", name, known, start)
    return exp.select("*").from_(exp.Table(this=exp.to_identifier(name, quoted=True)))


def _named_queries(spec: PipelineSpec) -> tuple[NamedQuery, ...]:
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
