"""The queries of a pipeline together with its relations: the topics they read, and their shapes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

from sqlglot import exp

from kaflow_engine.duck import binding
from kaflow_engine.errors import Location, ModelError, Problems, SqlError, UnknownName
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.key_formats import TEXT, type_of_key
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.pipelines.own_settings import as_said_by, joins_said_at
from kaflow_engine.model.record_columns import KEY, Role
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.chain_shapes import with_said_at, with_times
from kaflow_engine.sql.groups.changes import changes_as_rows
from kaflow_engine.sql.groups.event_time import EventTimes
from kaflow_engine.sql.named.attached import attached_names, attached_text
from kaflow_engine.sql.named.checks import with_checks, wrong_in_databases
from kaflow_engine.sql.named.dynamic_tables import dynamic_tables
from kaflow_engine.sql.named.named import (
    Named,
    named_queries,
    named_rows,
    named_topics,
    whole,
)
from kaflow_engine.sql.named.relations import (
    check_relations,
    counted_from,
    names_read,
    parse_relations,
    topics_behind,
)
from kaflow_engine.sql.parse import output_names, parse_query
from kaflow_engine.sql.scope import NeedsSchema, Schemas
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.filters import with_source_filters
from kaflow_engine.sql.tables.names import ReadTopic, Topics
from kaflow_engine.sql.tables.operations import OP
from kaflow_engine.sql.types.bind import normal_type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The query of an output, with the relations as it may name them."""

    write: Write
    tree: exp.Query
    start: Location
    relations: dict[str, exp.Query]
    """Those that are queries, or rows of others."""
    readings: dict[str, exp.Query]
    """Those that are readings of topics, as queries of these."""


def pipeline_topics(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the topics that a pipeline reads, in order of appearance; no columns are needed.

    Raises:
        ModelError: A query or a relation cannot be parsed, or relations do not fit together.
    """
    found = (topics_behind(each.tree, {**each.relations, **each.readings}) for each in _read(spec))
    return tuple(dict.fromkeys(topic for topics in found for topic in topics))


def names_by_reader(spec: PipelineSpec) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """Return the names that each relation reads, by its own in lower case; then those that the
    queries of each output read, by what that is called.

    Raises:
        ModelError: As `pipeline_topics`.
    """
    every = _read(spec)
    trees: dict[str, exp.Query] = {}
    for each in every:
        trees |= {**each.relations, **each.readings}
    relations = {name: names_read(tree) for name, tree in trees.items()}
    return relations, {each.write.target: names_read(each.tree) for each in every}


def pipeline_shapes(spec: PipelineSpec, schemas: Schemas) -> tuple[tuple[QueryShape, ...], ...]:
    """Read the query of each output into the shapes of its branches, with relations merged into it.

    `AS _key` is the key of records where `output.key` is not given, `AS _headers` their headers.

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
                _event_times(spec, each),
                topics_of(spec),
                traced=each.write.output.trace_context,
            )
            said_at = partial(joins_said_at, spec, each.write)
            branches = tuple(with_said_at(shape, said_at, each.start) for shape in branches)
            branches = tuple(
                with_times(shape) if as_said_by(spec, shape.said_at).row_time == "latest" else shape
                for shape in branches
            )
            raise_all(wrong_full(spec, branches, each.start))
        except NeedsSchema as notice:
            unknown.append(notice)
        except ModelError as error:
            wrong.append(error)
        else:
            found.append(tuple(_in_roles(each.write, shape) for shape in branches))
    raise_all(_once(wrong))
    if unknown:
        raise unknown[0]
    return with_source_filters(found)


def topics_of(spec: PipelineSpec) -> Topics:
    """Return what tells the meaning of names that stand for no query."""
    readings = {name.lower(): (name, each.topic or name) for name, each in spec.readings.items()}

    def read(name: str) -> ReadTopic:
        reading, topic = readings.get(name.lower(), (None, name))
        said = spec.read_as(topic, reading)
        operation = None if said.table else said.operation
        return ReadTopic(
            topic=topic,
            reading=reading,
            key=table_key(said, kept=operation is not None),
            operation=operation,
            is_dimension=topic in spec.state.dimensions,
            key_type=key_type(said),
            null_rows=said.on_null == "row" and not said.table and operation is None,
            attached=attached_text(spec, topic),
        )

    return read


def wrong_full(
    spec: PipelineSpec, branches: Sequence[QueryShape], at: Location
) -> Iterator[ModelError]:
    """Yield what cannot be done of FULL JOINs of events."""
    for shape, join in ((e, j) for e in branches for j in e.joins if j.kind == "ANTI"):
        place = at_line(at, join.line)
        both = (shape.driving, shape.source(join.alias))
        kept = [source.alias for source in both if not spec.is_event(source.topic)]
        if kept:
            yield SqlError(
                f"FULL JOIN would keep entries of dimension '{kept[0]}' that no event meets",
                place,
                "write LEFT JOIN from the events: each of them looks up its entry",
            )
        elif (said := as_said_by(spec, shape.said_at).emission.type) != "on_match":
            yield SqlError(
                f"FULL JOIN of events cannot run under {said} emission: it is not "
                "known that a row matches nothing before its time is up",
                place,
                "set emission.type to on_match; or use LEFT JOIN from the driving topic; or "
                "declare topics: <topic>: table: true for each topic of the join",
            )


def _event_times(spec: PipelineSpec, read: _Read) -> EventTimes:
    """Return what is known of the event times of topics in the query of an output."""

    def counts(topic: str, line: int | None) -> bool:
        at = at_line(read.start, line) or read.start
        said = as_said_by(spec, joins_said_at(spec, read.write, at))
        return said.row_time == "latest" and spec.is_event(topic)

    def column(topic: str, reading: str | None) -> str | None:
        return spec.read_as(topic, reading).event_time

    return EventTimes(column=column, counts=counts)


def key_type(topic: TopicSpec) -> str:
    """Return the type of `_key`, as DuckDB writes it; of one that DuckDB does not know, text."""
    said = topic.key_type
    try:
        said = None if said is None else normal_type(said)
    except binding.Error:
        said = None  # `declared_columns` says so
    return type_of_key(topic.key_format, said) or TEXT


def table_key(topic: TopicSpec, *, kept: bool = False) -> tuple[str, ...] | None:
    """Return the columns that are the key of a topic which is read as a table; None of events.

    Args:
        topic: What its author says of it.
        kept: It has changes, whose rows are kept.
    """
    return (topic.primary_key or (KEY,)) if topic.table or kept else None


def _in_roles(write: Write, shape: QueryShape) -> QueryShape:
    """Where the key is given, or rows have none, `AS _key` is a column like others; where they are
    no records of a topic, so is `AS _headers`."""
    roles: set[Role] = {"value"}
    if write.is_keyed and write.output.key is None:
        roles.add("key")
    if write.output.topic is not None:
        roles.add("headers")
    columns = tuple(
        output if output.role in roles else replace(output, role="value")
        for output in shape.outputs
    )
    return replace(shape, outputs=columns)


def names_written(write: Write) -> tuple[str, ...] | None:
    """Return the columns of an output as far as the text of its query says them."""
    if write.query is None:
        return None
    names = output_names(write.query)
    return names if write.output.changes is None or names is None else (*names, OP)


def _once(wrong: Sequence[ModelError]) -> list[ModelError]:
    """Leave out what is wrong in a relation and was found through another output, too."""
    found: dict[tuple[str, str], ModelError] = {}
    for error in wrong:
        for one in error.errors if isinstance(error, Problems) else (error,):
            found.setdefault((str(one.at), one.message), one)
    return list(found.values())


def _read(spec: PipelineSpec) -> list[_Read]:
    relations, readings, rows = named_queries(spec), named_topics(spec), named_rows(spec)
    named: tuple[Named, ...] = (*relations, *readings, *rows)
    own = {reading.name.lower(): reading.tree for reading in readings}
    last = {each.name.lower(): each.tree for each in rows}
    sets, looked_up = dynamic_tables(spec), {name.lower() for name in attached_names(spec)}
    asking = partial(with_checks, tables=sets, attached=looked_up)
    trees = {**parse_relations(relations, asking), **own, **last}
    queries: list[tuple[Write, exp.Query, Location]] = []
    wrong: list[ModelError] = []
    for write in spec.writes:
        start = spec.place(*write.query_at)
        try:
            tree = asking(_tree(write, start, named), at=start)
            if write.output.changes == "append":
                tree = changes_as_rows(tree, write.target, start)
            queries.append((write, tree, start))
        except ModelError as error:
            wrong.append(error)
    raise_all(wrong)
    check_relations([tree for _, tree, _ in queries], named, trees)
    placed = [(trees[each.name.lower()], each.at) for each in named]
    placed += [(tree, start) for _, tree, start in queries]
    raise_all(list(wrong_in_databases(sets, placed)))
    return [
        _Read(
            write=write,
            tree=tree,
            start=start,
            relations={
                **counted_from(start, relations, trees),
                **{each.name.lower(): each.counted_from(start) for each in rows},
            },
            readings=own,
        )
        for write, tree, start in queries
    ]


def _tree(write: Write, start: Location, relations: Sequence[Named]) -> exp.Query:
    if write.query is not None:
        return parse_query(write.query, start)
    name = write.relation or ""
    known = [relation.name for relation in relations]
    exact = name.lower() in {each.lower() for each in known}
    if not exact and get_close_matches(name, known, n=1, cutoff=0.75):
        raise UnknownName("relation", name, known, start)
    return whole(name)
