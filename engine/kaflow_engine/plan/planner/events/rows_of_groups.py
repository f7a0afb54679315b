"""Chains to which rows of groups or transforms come: they drive, or are events of a join."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.chains.chain import of_groups
from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving, Rows, Waiting
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.flow.timed import Runs
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.plan.planner.chain_parts import Behind, ChainParts, ended, waits_keyless
from kaflow_engine.plan.planner.events.matching import AT_ONCE, matching_of
from kaflow_engine.plan.planner.events.sides import event_aliases
from kaflow_engine.plan.planner.grouping.unions import InUnion
from kaflow_engine.plan.planner.roles import TopicRole, time_to_live
from kaflow_engine.plan.planner.steps import Needs, keyed_joins, required
from kaflow_engine.plan.planner.wiring import ChainOperators, Grouped
from kaflow_engine.sql.chain_shapes import Below
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.syntax import at_line


def of_rows(
    spec: PipelineSpec,
    parts: ChainParts,
    roles: Sequence[TopicRole],
    tables: Mapping[QueryShape, str],
    made: Iterable[ChainOperators],
    below: Below,
) -> tuple[ChainOperators, list[InUnion]]:
    """Lay out a chain whose rows are those of groups or transforms.

    Args:
        spec: What the author wrote, as it counts for its joins.
        parts: What is known of the chain.
        roles: The topics, as they count for its joins.
        tables: The ids of what makes the rows of queries below.
        made: The chains that are laid out.
        below: As in `ended`.

    Raises:
        SqlError: Such rows cannot leave as the author says.
    """
    shape, steps, number = parts.shape, parts.steps, parts.queries.number
    assert shape.rows_of is not None
    laid_out = tuple(made)
    id = tables[shape.rows_of]
    grouped = next(each for chain in laid_out for each in chain.grouped if each.aggregate.id == id)
    delay = max(grouped.delay, delay_of_sides(spec, parts, tables, laid_out))
    events = event_aliases(shape, roles)
    _refuse(spec, parts, grouped, waits=bool(events))
    matching, waiting = matching_of(spec, shape, roles), None
    if events:
        waiting = Waiting(
            ttl=time_to_live(shape.driving, roles) if matching is None else matching.rest,
            emission="immediate" if matching is None else "on_match",
            on_expiry="emit" if matching and matching.left else "drop",
        )
    role = next(role for role in roles if role.name == shape.driving.topic)
    records = Driving(
        input=decode_id(role.clock(shape.driving)),
        alias=shape.driving.alias,
        columns=(),
        filter=None,
        key=None,
        needs=None,
        raw=None,
        ttl=0,
        emission="immediate",
        on_expiry="drop",
        reemit=False,
    )
    edge = of_groups(records, number, waiting)
    where = [branch.shape.where for branch in parts.branches]
    finish = [expr for own in where for expr in own]
    for branch in parts.branches:
        finish += [of for unnest in branch.shape.unnests for _, of in unnest.lists]
        finish += branch.finishing
    needs = Needs(driving=(), steps=tuple(() for _ in steps))
    if events:
        needs = required(spec, steps, ())
    if matching is not None:
        needs, finish = matching.needs(needs, steps), [*finish, *matching.times]
    _, joined = keyed_joins(
        spec, shape, steps, needs, finish, roles, parts.types, edge, tables, parts.keys
    )
    if matching is not None:
        joined = matching.applied(joined)
    rows = Rows(input=id, key=key_text(steps[0].key))
    first, *others = joined
    joined = (replace(first, rows=rows, chain=number, waiting=waiting), *others)
    joined = with_delay(joined, delay) if events else joined
    behind = Behind(
        rows=joined[-1],
        joined=joined,
        delay=delay + edge.ttl,
        ttl=time_to_live(shape.driving, roles),
        waits_keyless=waits_keyless(edge, joined),
    )
    return ended(spec, parts, where, behind, below)


def delay_of_sides(
    spec: PipelineSpec,
    parts: ChainParts,
    tables: Mapping[QueryShape, str],
    made: Iterable[ChainOperators],
) -> int:
    """Return how many milliseconds the events of a chain that are rows of groups may be behind the
    watermark.

    Args:
        spec: What the author wrote.
        parts: What is known of the chain.
        tables: The ids of what makes the rows of queries below.
        made: The chains that are laid out.

    Raises:
        SqlError: Such rows replace each other.
    """
    grouped = {each.aggregate.id: each for chain in made for each in chain.grouped}
    start, delay = spec.place(*parts.branches[0].write.query_at), 0
    for source in parts.shape.sources:
        if source.query is None or not source.once:
            continue
        found = grouped[tables[source.query]]
        join = next(join for join in parts.shape.joins if join.alias == source.alias)
        if found.aggregate.is_table:
            raise _replaced(source.called, at_line(start, join.line) or start)
        delay = max(delay, found.delay)
    return delay


def with_delay(joins: Sequence[KeyedJoin], delay: int) -> tuple[KeyedJoin, ...]:
    """Return the joins of a chain, whose steps count as one operator, with their delay."""
    return tuple(replace(join, delay=delay) for join in joins)


def _refuse(spec: PipelineSpec, parts: ChainParts, grouped: Grouped, *, waits: bool) -> None:
    """Refuse rows that would have to wait and cannot, or that replace each other.

    Args:
        spec: What the author wrote, as it counts for the joins.
        parts: What is known of the chain.
        grouped: What makes its rows.
        waits: Events are joined to them.

    Raises:
        SqlError: With the way out.
    """
    shape, join = parts.shape, parts.shape.joins[0]
    start = spec.place(*parts.branches[0].write.query_at)
    at, called = at_line(start, join.line) or start, shape.driving.called
    if grouped.aggregate.is_table:
        raise _replaced(called, at)
    if grouped.ledger is not None:
        raise SqlError(
            f"'{called}' transforms rows of which a record has several, and looks "
            f"'{join.alias}' up behind it",
            at,
            "join first, and transform the joined rows; or write what it makes to a topic, and "
            "join that in another pipeline",
        )
    if isinstance(grouped.aggregate, Runs) and _have_windows(parts):
        raise SqlError(
            "a window over runs of rows is not supported: their rows leave long after the "
            "records that they are made of",
            at,
            "put the window below the runs, or write the runs to a topic, and read that one",
        )
    inner = next((each for each in shape.joins if each.kind == "INNER"), None)
    if inner is not None and spec.within != AT_ONCE and not waits:
        raise SqlError(
            f"rows of '{called}' do not wait for '{inner.alias}': they look up what is there",
            at_line(start, inner.line) or start,
            "write within: 0s, and a row that finds nothing goes nowhere; or LEFT JOIN",
        )
    said = "require" if spec.emission.require else f"type: {spec.emission.type}"
    other = {"final", "smart"} if waits else {"final", "on_match"}
    if spec.emission.type in other or spec.emission.require:
        raise SqlError(
            f"rows of '{called}' do not wait for '{join.alias}', as emission says ({said})",
            at,
            "set emission.type to on_match, or remove that"
            if waits
            else "remove that: they leave with what is there",
        )


def _replaced(called: str, at: Location) -> SqlError:
    return SqlError(
        f"'{called}' leaves before its windows are closed, so that its rows are replaced: they are "
        "no rows to join as events, or to look something up",
        at,
        "give it a relation of its own with emission: {type: final}; or join its changes, a "
        f"relation {{from: {called}, as: append}}",
    )


def _have_windows(parts: ChainParts) -> bool:
    return any(group.shape.window for branch in parts.branches for group in branch.groups)
