"""A chain whose rows are those of groups or transforms, which look up what is joined to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kaflow_engine.errors import SqlError
from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.timed import Runs
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.plan.planner.chain_parts import Behind, ChainParts, ended
from kaflow_engine.plan.planner.events.matching import AT_ONCE
from kaflow_engine.plan.planner.grouping.unions import InUnion
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.plan.planner.steps import Needs, keyed_joins
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
        roles: The topics.
        tables: The ids of what makes the rows of queries below.
        made: The chains that are laid out.
        below: As in `ended`.

    Raises:
        SqlError: Such rows cannot leave as the author says.
    """
    shape, steps, number = parts.shape, parts.steps, parts.queries.number
    assert shape.rows_of is not None
    id = tables[shape.rows_of]
    grouped = next(each for chain in made for each in chain.grouped if each.aggregate.id == id)
    _refuse(spec, parts, grouped)
    role = next(role for role in roles if role.name == shape.driving.topic)
    edge = Driving(
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
        waits=False,
        chain=number,
    )
    where = [branch.shape.where for branch in parts.branches]
    finish = [expr for own in where for expr in own]
    for branch in parts.branches:
        finish += [of for unnest in branch.shape.unnests for _, of in unnest.lists]
        finish += branch.finishing
    needs = Needs(driving=(), steps=tuple(() for _ in steps))
    _, joined = keyed_joins(
        spec, shape, steps, needs, finish, roles, parts.types, edge, tables, parts.keys
    )
    rows = Rows(input=id, key=key_text(steps[0].key))
    first = replace(joined[0], rows=rows, chain=number)
    joined = (first, *joined[1:])
    behind = Behind(rows=joined[-1], joined=joined, delay=grouped.delay, ttl=role.ttl)
    return ended(spec, parts, where, behind, below)


def _refuse(spec: PipelineSpec, parts: ChainParts, grouped: Grouped) -> None:
    """Refuse rows that would have to wait, or that replace each other.

    Raises:
        SqlError: With the way out.
    """
    shape, join = parts.shape, parts.shape.joins[0]
    start = spec.place(*parts.branches[0].write.query_at)
    at, called = at_line(start, join.line) or start, shape.driving.called
    if grouped.aggregate.is_table:
        raise SqlError(
            f"'{called}' leaves before its windows are closed, so that its rows are replaced, and "
            f"looks '{join.alias}' up",
            at,
            "give it a relation of its own with emission: {type: final}; or look up by its "
            f"changes, a relation {{from: {called}, as: append}}",
        )
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
    if inner is not None and spec.within != AT_ONCE:
        raise SqlError(
            f"rows of '{called}' do not wait for '{inner.alias}': they look up what is there",
            at_line(start, inner.line) or start,
            "write within: 0s, and a row that finds nothing goes nowhere; or LEFT JOIN",
        )
    said = "require" if spec.emission.require else f"type: {spec.emission.type}"
    if spec.emission.type in ("on_match", "final") or spec.emission.require:
        raise SqlError(
            f"rows of '{called}' do not wait for '{join.alias}', as emission says ({said})",
            at,
            "remove that: they leave with what is there",
        )


def _have_windows(parts: ChainParts) -> bool:
    return any(group.shape.window for branch in parts.branches for group in branch.groups)
