"""What is asked of transforms together with groups and outputs, and cannot be done."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import place_of
from kaflow_engine.plan.planner.outputs.output import BranchParts


def wrong_transforms(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield what cannot be done with the transforms of a pipeline."""
    for branch in branches:
        for before, group in zip((None, *branch.groups), branch.groups, strict=False):
            transform = group.shape.transform
            if transform is None:
                continue
            if before is not None and before.settings.is_table:
                yield SqlError(
                    f"'{transform.name}' transforms the rows of a window that change",
                    place_of(spec, branch.write, group.shape),
                    "remove emission.type: immediate, or emission.late_updates, so that its rows "
                    "leave once; or transform the rows that are grouped",
                )
            if spec.on_dimension_update == "reemit":
                yield ModelError(
                    "'on_dimension_update: reemit' does not work with transforms "
                    f"('{transform.name}')",
                    spec.place("on_dimension_update"),
                    "remove it, or transform the rows of a topic that another pipeline writes",
                )


def is_made_of_groups(branch: BranchParts) -> bool:
    """Tell whether a transform makes rows of groups."""
    transformed = bool(branch.groups) and branch.groups[-1].shape.transform is not None
    return transformed and bool(branch.gathered)
