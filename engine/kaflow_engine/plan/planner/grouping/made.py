"""Operators that gather rows without a GROUP BY: runs, changes as rows, and transforms."""

from dataclasses import replace

from kaflow_engine.flow.tables import Append
from kaflow_engine.flow.timed import Runs
from kaflow_engine.flow.transforms import IN, Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.plan.planner.grouping.settings import GroupParts
from kaflow_engine.plan.planner.wiring import Grouped
from kaflow_engine.sql.groups.runs.runs import over_many
from kaflow_engine.sql.groups.shapes import AppendShape, RunShape, TransformShape, is_passed


def runs_of(group: GroupParts, run: RunShape, id: str, state: int, inputs: tuple[str, ...]) -> Runs:
    """Return what makes runs of rows."""
    return Runs(
        id=id,
        state=state,
        inputs=inputs,
        alias=group.shape.alias,
        columns=run.inputs,
        sql=run.sql,
        together=over_many(run),
        results=run.results,
        size=run.size,
        every=run.every,
        per_partition=run.per_partition,
    )


def append_of(group: GroupParts, append: AppendShape, id: str, inputs: tuple[str, ...]) -> Append:
    """Return what makes append rows of changes."""
    return Append(
        id=id,
        inputs=inputs,
        alias=group.shape.alias,
        columns=tuple(column for column, _ in group.keys),
        deletes=append.deletes,
    )


def transform_of(
    group: GroupParts, transform: TransformShape, id: str, inputs: tuple[str, ...]
) -> Transform:
    """Return what transforms rows."""
    keys = [column for column, _ in group.keys]
    entered = [column for column in keys if column.name.startswith(IN)]
    return Transform(
        id=id,
        inputs=inputs,
        alias=group.shape.alias,
        name=transform.name,
        columns=tuple(Column(c.name.removeprefix(IN), c.type) for c in entered),
        passed=tuple(c for c in keys if is_passed(c.name)),
        results=group.results,
        params=transform.params,
    )


def with_both(known: Grouped, new: Grouped) -> Grouped | None:
    """Return one transform for two that differ in what goes past them; None where they differ in
    more, or are none."""
    first, second = known.aggregate, new.aggregate
    if not isinstance(first, Transform) or not isinstance(second, Transform):
        return None
    makes = [replace(each, id="", inputs=(), passed=()) for each in (first, second)]
    count, entry, other = len(first.columns), known.entries[0], new.entries[0]
    given = [replace(each, id="", columns=each.columns[:count]) for each in (entry, other)]
    if makes[0] != makes[1] or given[0] != given[1]:
        return None
    passed = dict.fromkeys((*entry.columns[count:], *other.columns[count:]))
    return replace(
        known,
        entries=(replace(entry, columns=(*entry.columns[:count], *passed)),),
        aggregate=replace(first, passed=tuple(column for column, _ in passed)),
    )
