"""What is asked of transforms together with groups and outputs, and cannot be done."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.outputs.output import BranchParts


def wrong_transforms(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield what cannot be done with the transforms of a pipeline."""
    for branch in branches:
        for group in branch.groups:
            transform = group.shape.transform
            if transform is not None and spec.on_dimension_update == "reemit":
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
