"""A query as the shapes of its branches, which are SELECTs whose rows together are its own."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.record_columns import HEADERS, TRACE_HEADERS
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.full_joins import split_full
from kaflow_engine.sql.groups.event_time import EventTimes
from kaflow_engine.sql.groups.first_rows import with_qualify
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.read import NO_TIMES, Reader
from kaflow_engine.sql.scope import NeedsSchema, Schemas
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.syntax import DIALECT, at_line
from kaflow_engine.sql.tables.names import Named, Names, ReadTopic, Topics
from kaflow_engine.sql.tables.refused import wrong_tables
from kaflow_engine.sql.tables.unions import wrong_keys_of_branches

_TYPE = "MAP(VARCHAR, BLOB)"
_OF_TRACES = (
    "map_from_entries(list_filter(map_entries($headers), "
    f"lambda e: e.key IN ({', '.join(map(repr, TRACE_HEADERS))})))"
)


def read_branches(
    query: exp.Query,
    schemas: Schemas,
    at: Location | None,
    relations: Named,
    event_times: EventTimes = NO_TIMES,
    topics: Topics = lambda name: ReadTopic(topic=name),
    *,
    traced: bool = False,
) -> tuple[QueryShape, ...]:
    """Read a query into the shapes of its branches: SELECTs whose rows together are its own.

    A query over a union is one over each of its branches. All have the same columns, with the names
    of the first one and, as far as the columns of topics are known, the same types.

    Args:
        query: The tree.
        schemas: Columns of topics.
        at: Where its text begins.
        relations: What other names mean; their lines are counted from `at`, too.
        event_times: Of topics.
        topics: What names mean that stand for no query.
        traced: Rows have those headers of their records that name a trace.

    Raises:
        SqlError: it cannot run on a stream.
        Problems: several mistakes.
        NeedsSchema: it needs columns of a topic that are not known yet.
    """
    names = Names(at=at, relations=relations, topics=topics)
    reader = Reader(schemas=schemas, at=at, names=names, event_times=event_times)
    try:
        found = reader.read(with_qualify(query), {}, frozenset())
    except NeedsSchema:
        raise_all(reader.wrong)
        raise
    except ModelError as error:
        raise_all([*reader.wrong, error])
        raise
    raise_all([*reader.wrong, *wrong_keys_of_branches(found, at)])
    found = _with_trace_context(found, at) if traced else found
    shapes = tuple(shape for flat in found for shape in split_full(flat.whole_shape(), at))
    raise_all([e for shape in shapes for e in wrong_tables(shape, at)])
    return shapes


def _with_trace_context(branches: Sequence[Flat], at: Location | None) -> list[Flat]:
    """Return the branches of a query with headers that name the traces of their records.

    Rows that are made of several records, or replace each other, have none; where all are such
    rows, no branch has headers.

    Args:
        branches: With the same columns.
        at: Where the SQL text begins.

    Raises:
        SqlError: The query sets headers itself.
    """
    own = next((each for each in branches if HEADERS in each.sets), None)
    if own is not None:
        raise SqlError(
            f"trace_context sets the headers of records, and so does AS {own.sets[HEADERS]}",
            at_line(at, own.line),
            "remove one of the two; a query passes a header on as _headers['traceparent']",
        )
    found = [_of_record(each) for each in branches]
    if not any(found):
        return list(branches)
    none = exp.cast(exp.null(), _TYPE, dialect=DIALECT)
    return [
        replace(
            branch,
            outputs={**branch.outputs, HEADERS: headers or none.copy()},
            sets={**branch.sets, HEADERS: HEADERS},
        )
        for branch, headers in zip(branches, found, strict=True)
    ]


def _of_record(branch: Flat) -> exp.Expr | None:
    headers = branch.record.get(HEADERS)
    if headers is None or branch.is_table or not branch.is_of_records:
        return None

    def filled(node: exp.Expr) -> exp.Expr:
        return headers.copy() if isinstance(node, exp.Placeholder) else node

    return parse_expression(_OF_TRACES).transform(filled)
