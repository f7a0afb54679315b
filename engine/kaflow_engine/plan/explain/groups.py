"""GROUP BY as `kaflow explain` shows it."""

from collections.abc import Iterator, Sequence

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.windows import WINDOW_END, WINDOW_START, window_text
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explanation import CallPart, GroupPart
from kaflow_engine.plan.planner.grouping.settings import GroupSettings, group_settings
from kaflow_engine.sql.shape import ROW, CallShape, GroupShape, QueryShape


def group_parts(
    spec: PipelineSpec,
    write: Write,
    shape: QueryShape,
    planned: Sequence[Aggregate] | None,
    *,
    is_looked_up: bool,
) -> tuple[GroupPart, ...]:
    """Return what happens to the rows of a query that are grouped, one GROUP BY after the other.

    Args:
        spec: What the author wrote.
        write: The output.
        shape: The query.
        planned: Of each GROUP BY the operator; None where columns are not known yet.
        is_looked_up: Its groups are joined by other queries.
    """
    known = planned or [None] * len(shape.groups)
    settings = group_settings(spec, write, shape, is_looked_up=is_looked_up)
    on_time = all(spec.topic(topic).lateness == 0 for topic in shape.topics)
    named: dict[str, str] = {}
    found: list[GroupPart] = []
    for group, own, aggregate in zip(shape.groups, settings, known, strict=True):
        found.append(_part(group, own, aggregate, named, on_time=on_time and not found))
        named |= _named(group, named)
    return tuple(found)


def _part(
    group: GroupShape,
    settings: GroupSettings,
    aggregate: Aggregate | None,
    named: dict[str, str],
    *,
    on_time: bool,
) -> GroupPart:
    keeps = {r.column.name: r.keeps for r in aggregate.results} if aggregate else {}
    behind = _named(group, named)
    return GroupPart(
        keys=tuple(shown(expr.sql, named) for _, expr in group.keys),
        window=window_text(group.window) if group.window else None,
        calls=tuple(
            CallPart(sql=_call(call, named), keeps=keeps.get(call.name)) for call in group.calls
        ),
        having=tuple(shown(part.sql, {**named, **behind}) for part in group.where),
        distinct=group.distinct,
        leaves=settings.leaves,
        each=settings.each,
        grace=settings.grace,
        on_late=settings.on_late,
        delay=aggregate.delay if aggregate else None,
        ttl=aggregate.ttl if aggregate else settings.ttl,
        strict=on_time and group.window is not None and settings.grace == 0,
    )


def _call(call: CallShape, named: dict[str, str]) -> str:
    if call.meaning is not None:
        return shown(call.meaning, named)
    sql = call.sql
    for name, expr in call.arguments:
        sql = sql.replace(identifier(f"{ROW}.{name}"), expr.sql)
    return shown(sql, named)


def _named(group: GroupShape, named: dict[str, str]) -> dict[str, str]:
    """Return what the columns of a group are in the words of the query."""
    keys = {name: shown(expr.sql, named) for name, expr in group.keys}
    calls = {call.name: _call(call, named) for call in group.calls}
    times = {name: name for name in (WINDOW_START, WINDOW_END)}
    columns = {**keys, **calls, **times}
    return {identifier(f"{group.alias}.{name}"): text for name, text in columns.items()}


def names_of_groups(query: QueryShape) -> dict[str, str]:
    """Return what the columns of the groups of a query are in its words."""
    named: dict[str, str] = {}
    for group in query.groups:
        named |= _named(group, named)
    return named


def shown(sql: str, named: dict[str, str]) -> str:
    """Return SQL with columns of groups in the words of the query."""
    for name, text in named.items():
        sql = sql.replace(name, text)
    return sql.replace('"', "")


def group_rows(group: GroupPart) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a GROUP BY."""
    if group.distinct:
        yield from _distinct_rows(group)
        return
    parts = [*group.keys, *([group.window] if group.window else [])]
    yield "GROUP BY", ", ".join(parts) or "nothing: all rows are one group, in one place"
    for call in group.calls:
        yield "  calls", f"{call.sql}{_WAYS[call.keeps]}"
    if group.window:
        grace = f" plus {format_duration(group.grace)}" if group.grace else ""
        late = "a dead letter" if group.on_late == "dead_letter" else "dropped and counted"
        yield "  closes", f"when the watermark is at the end of the window{grace}"
        yield "  late", f"a record whose windows are all closed is {late}"
        if group.strict:
            yield (
                "  warning",
                "lateness and grace are both 0: what comes out of order may be late",
            )
    elif group.ttl is not None:
        yield "  kept", f"{format_duration(group.ttl)} after the last record of the group"
    else:
        yield "  kept", "for ever: the state grows with the number of groups"
    yield from _delay(group)
    for condition in group.having:
        yield "HAVING", condition
    yield "  leaves", _leaving(group)


def _distinct_rows(group: GroupPart) -> Iterator[tuple[str, str]]:
    yield "DISTINCT", ", ".join(group.keys)
    ttl = "the greatest TTL of its topics" if group.ttl is None else format_duration(group.ttl)
    yield "  kept", f"{ttl} after the row that left; equal rows do not prolong it"
    yield from _delay(group)
    for condition in group.having:
        yield "WHERE", condition
    yield "  leaves", "the first of equal rows, at once"


def _delay(group: GroupPart) -> Iterator[tuple[str, str]]:
    if group.delay:
        text = f"its watermark is {format_duration(group.delay)} behind that of the topics"
        yield "  delay", text


_WAYS = {
    None: "",
    False: ": an accumulator",
    True: ": over the rows of the group, which are kept",
}


def _leaving(group: GroupPart) -> str:
    if group.leaves == "closed":
        return "one row for each group, when its window is closed"
    if group.each:
        return "every change; a group that HAVING takes out leaves as a delete"
    return "one change for each group and batch, if its row is another one"
