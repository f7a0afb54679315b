"""Operators that gather rows without a GROUP BY: runs, changes as rows, and transforms."""

from kaflow_engine.flow.tables import Append
from kaflow_engine.flow.timed import Runs
from kaflow_engine.flow.transforms import IN, PASSED, Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.plan.planner.grouping.settings import GroupParts
from kaflow_engine.sql.groups.shapes import AppendShape, RunShape, TransformShape


def runs_of(group: GroupParts, run: RunShape, id: str, state: int, inputs: tuple[str, ...]) -> Runs:
    """Return what makes runs of rows."""
    return Runs(
        id=id,
        state=state,
        inputs=inputs,
        alias=group.shape.alias,
        columns=run.inputs,
        sql=run.sql,
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
        passed=tuple(c for c in keys if c.name.startswith(PASSED) and c not in entered),
        results=group.results,
        params=transform.params,
    )
