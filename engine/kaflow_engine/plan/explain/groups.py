"""GROUP BY as `kaflow explain` shows it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Aggregate, Gathers
from kaflow_engine.flow.tables import APPEND_KEY, APPEND_OP, APPEND_TIME
from kaflow_engine.flow.windows import WINDOW_END, WINDOW_START, window_text
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.record_columns import KEY, NULL_VALUE
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.group_part import AppendPart, CallPart, GroupPart, RunPart
from kaflow_engine.plan.explain.transforms import names_of_transform, transform_part, transform_rows
from kaflow_engine.plan.planner.grouping.settings import GroupSettings, group_settings
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.shapes import RunShape
from kaflow_engine.sql.shape import HERE, ROW, CallShape, Expr, GroupShape, QueryShape
from kaflow_engine.sql.tables.operations import OP


def group_parts(
    spec: PipelineSpec,
    write: Write,
    shape: QueryShape,
    planned: Sequence[Gathers] | None,
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
    named = names_of_rows(shape)
    found: list[GroupPart] = []
    retracts = shape.is_table
    for group, own, aggregate in zip(shape.groups, settings, known, strict=True):
        known_of = aggregate if isinstance(aggregate, Aggregate) else None
        part = _part(group, own, known_of, named, on_time=on_time and not found)
        found.append(replace(part, retracts=retracts))
        named |= _named(group, named)
        retracts = own.is_table
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
            CallPart(sql=_call(call, named), keeps=keeps.get(call.name))
            for call in group.calls
            if call.name != HERE
        ),
        having=tuple(_condition(part, {**named, **behind}) for part in group.where),
        distinct=group.distinct,
        run=None if group.run is None else _run(group.run),
        append=None
        if group.append is None
        else AppendPart(of=group.append.of, deletes=group.append.deletes),
        transform=None if group.transform is None else transform_part(group.transform),
        leaves=settings.leaves,
        each=settings.each,
        grace=settings.grace,
        on_late=settings.on_late,
        delay=aggregate.delay if aggregate else None,
        ttl=aggregate.ttl if aggregate else settings.ttl,
        retracts=False,
        retain=settings.retain,
        strict=on_time and group.window is not None and settings.grace == 0,
        branches=1 + len(group.beside),
        travels=aggregate is None or aggregate.exchange,
    )


def _condition(part: Expr, named: Mapping[str, str]) -> str:
    if f"'{NULL_VALUE.name}'" in part.sql:
        return "its last record is no null value"
    return shown(part.sql, named)


def _run(run: RunShape) -> RunPart:
    return RunPart(
        size=run.size,
        every=run.every,
        per_partition=run.per_partition,
        sql=plain(" ".join(run.sql.split())),
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
    if group.run is not None:
        called = {**{c.name: c.name for c in group.run.results}, APPEND_TIME: TIME}
        return {identifier(f"{group.alias}.{name}"): text for name, text in called.items()}
    if group.transform is not None:
        return names_of_transform(group)
    if group.append is not None:
        beside = {APPEND_OP: OP, APPEND_TIME: TIME, APPEND_KEY: KEY}
        called = {name: name for name, _ in group.keys} | beside
        return {identifier(f"{group.alias}.{name}"): text for name, text in called.items()}
    keys = {name: shown(expr.sql, named) for name, expr in group.keys}
    calls = {call.name: _call(call, named) for call in group.calls}
    times = {name: name for name in (WINDOW_START, WINDOW_END, TIME)}
    columns = {**keys, **calls, **times}
    return {identifier(f"{group.alias}.{name}"): text for name, text in columns.items()}


def names_of_groups(query: QueryShape) -> dict[str, str]:
    """Return what the columns of the groups of a query are in its words."""
    named: dict[str, str] = {}
    for group in query.groups:
        named |= _named(group, named)
    return named


def names_of_rows(shape: QueryShape) -> dict[str, str]:
    """Return what the columns of rows that look something up are in the words of their query."""
    return {} if shape.rows_of is None else names_of_groups(shape.rows_of)


def shown(sql: str, named: Mapping[str, str]) -> str:
    """Return SQL with columns of groups in the words of the query."""
    for name, text in named.items():
        sql = sql.replace(name, text)
    return plain(sql).replace('"', "")


def group_rows(group: GroupPart) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a GROUP BY."""
    if group.run is not None:
        yield from _run_rows(group, group.run)
    elif group.transform is not None:
        yield from transform_rows(group.transform, group.having)
    elif group.append is not None:
        yield from _append_rows(group, group.append)
    elif group.distinct:
        yield from _distinct_rows(group)
    else:
        yield from _groups_rows(group)
    if group.branches > 1:
        text = f"the rows of {group.branches} branches"
        text += "" if group.retracts else "; time passes as in the last of them"
        yield "  UNION ALL", text


def taken_rows(group: GroupPart) -> Iterator[tuple[str, str]]:
    """Yield what a group that takes the rows of several branches reads of those of one."""
    what = "DISTINCT" if group.distinct else "GROUP BY" if group.run is None else "runs of"
    parts = [*group.keys, *([group.window] if group.window else [])]
    yield what, f"{', '.join(parts) or 'nothing'}: with the rows of the other branches"
    for call in group.calls:
        yield "  calls", call.sql


def _groups_rows(group: GroupPart) -> Iterator[tuple[str, str]]:
    parts = [*group.keys, *([group.window] if group.window else [])]
    yield "GROUP BY", ", ".join(parts) or "nothing: all rows are one group, in one place"
    for call in group.calls:
        yield "  calls", f"{call.sql}{_WAYS[call.keeps]}"
    if group.window:
        grace = f" plus {format_duration(group.grace)}" if group.grace else ""
        late = "a dead letter" if group.on_late == "dead_letter" else "dropped and counted"
        yield "  closes", f"when the watermark is at the end of the window{grace}"
        yield "  late", f"a record whose windows are all closed is {late}"
        if group.retain is not None:
            yield "  stays", f"for {format_duration(group.retain)} where it is read as a table"
        if group.strict:
            yield (
                "  warning",
                "lateness and grace are both 0: what comes out of order may be late",
            )
    elif group.ttl is not None:
        yield "  kept", f"{format_duration(group.ttl)} after the last record of the group"
    elif group.retracts and group.keys:
        yield "  kept", "until the last row of the group is gone"
    else:
        yield "  kept", "for ever: the state grows with the number of groups"
    yield from _delay(group)
    for condition in group.having:
        yield "HAVING", condition
    yield "  leaves", _leaving(group)


def _run_rows(group: GroupPart, run: RunPart) -> Iterator[tuple[str, str]]:
    where = "each source partition" if run.per_partition else "all of them, in one place"
    yield "run", f"the next {run.size} rows of {where}"
    if run.every is not None:
        yield "  due", f"with fewer rows {format_duration(run.every)} after its first one"
    yield "  query", run.sql
    yield "  kept", "the rows of a run that is not full"
    for condition in group.having:
        yield "WHERE", condition
    yield "  leaves", "what the query gives, when a run is full or its time has come"


def _append_rows(group: GroupPart, append: AppendPart) -> Iterator[tuple[str, str]]:
    deleted = ", and the row before each delete" if append.deletes else ""
    yield "changes", f"each insert and update of '{append.of}'{deleted}, as rows of their own"
    yield "  kept", "nothing"
    for condition in group.having:
        yield "WHERE", condition
    yield "  leaves", "each change, at once"


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
    if group.leaves == "ended":
        often = "each late row" if group.each else "each batch of late rows"
        return f"a row for each group when its window ends, and again with {often}"
    if group.each:
        return "every change; a group that HAVING takes out leaves as a delete"
    return "one change for each group and batch, if its row is another one"
