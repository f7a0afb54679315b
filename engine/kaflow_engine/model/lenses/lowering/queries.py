"""A SELECT of a processor as DuckDB's SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from kaflow_engine.errors import SqlError
from kaflow_engine.model.lenses.grammar.syntax import Duration, Join, Query
from kaflow_engine.model.lenses.lowering.expressions import CONJUNCT, write, write_list
from kaflow_engine.model.lenses.lowering.formats import goes_on
from kaflow_engine.model.lenses.lowering.joins import Joined, refuse_preserved
from kaflow_engine.model.lenses.lowering.nulls.queries import nulls_of
from kaflow_engine.model.lenses.lowering.projections import (
    WHOLE,
    Items,
    items_of,
    key_shape,
    refuse_aggregates,
    refuse_in_groups,
    write_items,
)
from kaflow_engine.model.lenses.lowering.scope import Input, Scope, Shape
from kaflow_engine.model.lenses.lowering.sources import Relation, Sources
from kaflow_engine.model.lenses.lowering.writer import Writer, quoted
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.model.sources.nulls import Operand

GRACE = 86_400_000
"""How long after its end a window takes records without GRACE BY, as in Kafka Streams."""
NEW_KEY = "new key"
"""What the key is called that a SELECT gives a TABLE."""
_TIME = "_time"
"""What the event time of a record is called in DuckDB's SQL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Near:
    """Two streams whose events match within a shorter time than they are kept."""

    first: Input
    other: Input
    within: Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredQuery:
    """A SELECT in DuckDB's SQL, and what is known of its rows."""

    sql: str
    relation: Relation
    grace: int | None
    """Of its windows; None: it has none."""
    joined: Joined | None
    """How its sources are joined; None: it has no joins."""
    operands: tuple[Operand, ...]
    """Which may be NULL, and must not."""
    rekeyed: bool = False
    """Its rows are a TABLE by the column `NEW_KEY`, which is none of them."""


def lower_query(
    query: Query, sources: Sources, *, writes: bool, stored: str | None = None
) -> LoweredQuery:
    """Lower a SELECT.

    Args:
        query: As its author wrote it.
        sources: What it may read; roles of topics are added.
        writes: Whether its rows go to a topic.
        stored: The format in which keys are written; None: the processor does not say it.

    Raises:
        ModelError: It says something that is not there, or that cannot be.
    """
    inputs = sources.inputs(query)
    driving = _driving(query, inputs)
    scope = Scope(
        source=sources.source,
        function_kind=sources.function_kind,
        inputs=inputs,
        driving=driving,
        outer=any(join.side == "FULL" for join in query.joins),
        elements=tuple(lateral.name.text for lateral in query.laterals),
    )
    sources.check_event_time(query, inputs)
    _check_clauses(query, scope)
    joined = sources.joined.get(query.offset)
    near = _check_joins(query, inputs, sources, joined) if joined is not None else ()
    items = items_of(query, scope)
    if query.groups:
        refuse_in_groups(items, scope)
    else:
        refuse_aggregates(query, scope)
    table = all(each.shape.kind == "TABLE" for each in inputs)
    if writes and driving.shape.several_keys and driving.shape.kind == "STREAM":
        _check_own_key(query, items, scope)
    read = {each.called: sources.relation(each).rows for each in inputs}
    rows, operands = nulls_of(query, items, scope, read)
    out = Writer(sources.source, query)
    out.put("SELECT ")
    plain = not query.groups and not table
    as_it_came = goes_on(driving.shape.key_form, stored) and not scope.outer
    default_key = writes and plain and not as_it_came
    rekeyed = table and items.key_offset is not None and not query.groups
    key_as = NEW_KEY if rekeyed else KEY
    write_items(
        items, scope, out, default_key=default_key, as_struct=stored == "AVRO", key_as=key_as
    )
    _write_sources(query, scope, out)
    _write_clauses(query, near, scope, out)
    events = [sources.relation(each).events for each in inputs]
    grouped = bool(query.groups)
    shape = Shape(
        kind="TABLE" if grouped or table else "STREAM",
        key=None if grouped else key_shape(items, scope),
        key_form=None if grouped or items.key_offset is not None else driving.shape.key_form,
        whole=WHOLE if items.whole else None,
        grouped=grouped,
        several_keys=len(query.groups) + (query.window is not None) > 1,
    )
    relation = Relation(
        shape=shape,
        events=frozenset() if shape.kind == "TABLE" else frozenset[str]().union(*events),
        format=sources.relation(driving).format,
        rows=rows,
    )
    grace = None
    if query.window is not None:
        grace = query.grace.milliseconds if query.grace else GRACE
    return LoweredQuery(
        sql=out.sql,
        relation=relation,
        grace=grace,
        joined=joined,
        operands=operands,
        rekeyed=rekeyed,
    )


def _check_own_key(query: Query, items: Items, scope: Scope) -> None:
    if items.key_offset is None and not query.groups:
        raise _wrong(
            scope,
            scope.driving.name.offset,
            f"the key of '{scope.driving.called}' has several values",
            "write AS _key for one of them, or AS _key.<field> for each",
        )


def _driving(query: Query, inputs: tuple[Input, ...]) -> Input:
    """Return the source whose records make the rows."""
    sides = zip(query.joins, inputs[1:], strict=True)
    preserved = [of for join, of in sides if join.side == "RIGHT"]
    if preserved:
        return preserved[-1]
    return next((each for each in inputs if each.shape.kind == "STREAM"), inputs[0])


def _check_clauses(query: Query, scope: Scope) -> None:
    if query.window is not None and not query.groups:
        hint = "write GROUP BY _key, or other fields"
        raise _wrong(scope, query.window.offset, "WINDOW BY needs GROUP BY", hint)
    streams = [each for each in scope.inputs if each.shape.kind == "STREAM"]
    if query.grace is not None and query.window is None and len(streams) < 2:
        hint = "write WINDOW BY TUMBLE <duration>, or remove it"
        raise _wrong(scope, query.grace.offset, "GRACE BY needs WINDOW BY", hint)
    if query.having is not None and not query.groups:
        raise _wrong(scope, query.having.offset, "HAVING needs GROUP BY", "write WHERE")
    if query.window is not None and scope.driving.shape.kind == "TABLE":
        raise _wrong(
            scope,
            query.window.offset,
            "rows of a TABLE are in no window",
            "write SELECT STREAM, or remove WINDOW BY",
        )


def _check_joins(
    query: Query, inputs: tuple[Input, ...], sources: Sources, joined: Joined
) -> tuple[_Near, ...]:
    """Take down how events are joined; return which of them are kept longer than they match."""
    refuse_preserved(query, [each.shape.kind for each in inputs], sources.source)
    before, near = [inputs[0]], list[_Near]()
    for join, of in zip(query.joins, inputs[1:], strict=True):
        streams = [each for each in before if each.shape.kind == "STREAM"]
        before.append(of)
        if streams and of.shape.kind == "STREAM":
            within = _within(join, sources)
            topics = [sources.relation(each).events for each in (*streams, of)]
            place = sources.source.place(within.offset)
            if joined.keep(of.called, frozenset[str]().union(*topics), within, place):
                near.append(_near(streams[0], of, within, sources))
            grace = query.grace if query.window is None else None
            if join.side != "INNER" or grace is not None:
                joined.wait(sources.source.place(join.offset), grace)
        elif join.within is not None:
            raise SqlError(
                "WITHIN is for the JOIN of two streams",
                sources.source.place(join.within.offset),
                "remove it: a table has one row for each key, however old it is",
            )
    _keep_look_ups(query, inputs, sources, joined)
    return tuple(near)


def _near(first: Input, other: Input, within: Duration, sources: Sources) -> _Near:
    own = next((of for of in (first, other) if sources.relation(of).rows.has(_TIME)), None)
    if own is not None:
        raise SqlError(
            f"'{own.called}' has a field '{_TIME}' of its own, and the time of its records is "
            "compared in a JOIN that is WITHIN less than another",
            sources.source.place(within.offset),
            "give the field another name, or write the same duration in all joins of one row",
        )
    return _Near(first=first, other=other, within=within)


def _within(join: Join, sources: Sources) -> Duration:
    if join.within is None:
        raise SqlError(
            "a JOIN of two streams needs WITHIN",
            sources.source.place(join.offset),
            "write WITHIN <duration> behind its condition: how far apart matches may be",
        )
    return join.within


def _keep_look_ups(
    query: Query, inputs: tuple[Input, ...], sources: Sources, joined: Joined
) -> None:
    """An event whose row is not in the table leaves nothing behind: it does not wait."""
    streams = [each for each in inputs if each.shape.kind == "STREAM"]
    inner = any(join.side == "INNER" for join in query.joins)
    if len(streams) == 1 and inner:
        joined.looked_up |= sources.relation(streams[0]).events


def _write_sources(query: Query, scope: Scope, out: Writer) -> None:
    first, *others = scope.inputs
    out.at(query.source)
    out.put(" FROM ", _source(first))
    for join, of in zip(query.joins, others, strict=True):
        out.at(join)
        out.put(f" {join.side} JOIN ", _source(of), " ON ")
        if join.condition is None:
            out.put(f"{scope.key_of(first)} = {scope.key_of(of)}")
        else:
            write(join.condition, scope, out)
    for place, lateral in enumerate(query.laterals, 1):
        out.at(lateral)
        out.put(" CROSS JOIN unnest(")
        write(lateral.value, scope, out)
        out.put(f") AS elements_{place}({quoted(lateral.name.text)})")


def _source(of: Input) -> str:
    name = quoted(of.relation)
    return name if of.called == of.relation else f"{name} AS {quoted(of.called)}"


def _write_clauses(query: Query, near: Sequence[_Near], scope: Scope, out: Writer) -> None:
    if query.where is not None:
        out.put(" WHERE ")
        write(query.where, scope, out, CONJUNCT if near else 0)
    for place, each in enumerate(near):
        out.put(" AND " if place or query.where is not None else " WHERE ")
        first, other = (f"epoch_ms({scope.prefix(of)}{_TIME})" for of in (each.first, each.other))
        out.put(f"abs({first} - {other}) <= {each.within.milliseconds}")
    if query.groups:
        out.put(" GROUP BY ")
        write_list(query.groups, scope, out)
    if query.window is not None:
        out.put(", ")
        out.at(query.window)
        out.put(query.window.kind.lower(), "(", _interval(query.window.size))
        if query.window.advance is not None:
            out.put(", ", _interval(query.window.advance))
        out.put(")")
    if query.having is not None:
        out.put(" HAVING ")
        write(query.having, scope, out)


def _interval(duration: Duration) -> str:
    return f"INTERVAL {duration.milliseconds} MILLISECONDS"


def _wrong(scope: Scope, offset: int, message: str, hint: str) -> SqlError:
    return SqlError(message, scope.source.place(offset), hint)
