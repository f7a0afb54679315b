"""What is asked of transforms together with groups and outputs, and cannot be done."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.sql.shape import QueryShape


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
    """Tell whether a transform, a look-up or a join of events makes rows of those of groups."""
    transformed = bool(branch.groups) and branch.groups[-1].shape.transform is not None
    looked_up = not branch.groups and branch.shape.rows_of is not None
    if any(source.once for source in branch.shape.sources) and not branch.groups:
        return True
    return (transformed or looked_up) and not _is_of_records(branch.shape)


def _is_of_records(shape: QueryShape) -> bool:
    """Tell whether rows are those of records, joined or transformed, and of no group."""
    below = shape.rows_of is None or _is_of_records(shape.rows_of)
    return below and not shape.is_table and not shape.gathered
