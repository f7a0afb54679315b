"""What cannot be done with groups under UNION ALL, and with those of its rows."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import place_of
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.sql.groups.shapes import RunShape
from kaflow_engine.sql.shape import GroupShape


def wrong_unions(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield what is wrong with unions: of an output, and of what is grouped below it."""
    for branch in branches:
        if branch.place[1] >= 0 and branch.groups and _others(branch, branches):
            yield from _changing(spec, branch)
        for group in branch.groups:
            if group.shape.beside and group.shape.run is not None:
                yield from _runs(spec, branch, group.shape, group.shape.run)


def _others(branch: BranchParts, branches: Sequence[BranchParts]) -> bool:
    output, number = branch.place
    return any(o == output and n >= 0 and n != number for o, n in (e.place for e in branches))


def _changing(spec: PipelineSpec, branch: BranchParts) -> Iterator[ModelError]:
    last = branch.groups[-1]
    if last.shape.window is not None and last.settings.is_table:
        yield SqlError(
            "the groups of this window change until it is closed, and stand under UNION ALL",
            place_of(spec, branch.write, last.shape),
            "remove emission.type and late_updates: a row of a window leaves once, when it is "
            "closed",
        )


def _runs(
    spec: PipelineSpec, branch: BranchParts, group: GroupShape, run: RunShape
) -> Iterator[ModelError]:
    if run.per_partition:
        yield SqlError(
            "runs of each source partition over a UNION ALL: its rows come from partitions of "
            "several topics",
            place_of(spec, branch.write, group),
            "remove per: partition",
        )
