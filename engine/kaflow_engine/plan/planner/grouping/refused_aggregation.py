"""What is said of groups in `aggregation`, and has no effect on any."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.model.pipelines.own_settings import as_said_by, owners
from kaflow_engine.model.query_settings import AggregationSpec
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import owner_of
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.sql.chain_shapes import groups_of_tables
from kaflow_engine.sql.shape import GroupShape

_OF_WINDOWS = ("grace", "on_late")


def wrong_aggregation(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield keys of `aggregation` that concern no GROUP BY."""
    own: dict[Path, list[GroupShape]] = {}
    tables: list[GroupShape] = []
    read_as_tables: list[GroupShape] = []
    for branch in branches:
        for group in branch.groups:
            if group.shape.append is not None or group.shape.transform is not None:
                continue
            owner = owner_of(spec, branch.write, group.shape, "aggregation")
            own.setdefault(owner, []).append(group.shape)
        tables += groups_of_tables(branch.shape)
        pairs = list(zip(branch.groups, branch.groups[1:], strict=False))
        tables += [group.shape for before, group in pairs if before.settings.is_table]
        read_as_tables += [before.shape for before, _ in pairs if before.settings.is_table]
        if branch.place[1] < 0:  # others look its groups up
            read_as_tables += [group.shape for group in branch.groups[-1:]]
    for owner in ((), *owners(spec, "aggregation")):
        aggregation, groups = as_said_by(spec, owner).aggregation, own.get(owner, [])
        path: Path = (*owner, "aggregation")
        if aggregation is not None:
            yield from _without_effect(spec, aggregation, path, groups)
            windows = [group for group in groups if group.window is not None]
            if (
                aggregation.retain is not None
                and windows
                and not any(group in read_as_tables for group in windows)
            ):
                yield ModelError(
                    "aggregation.retain has no effect: nothing in the pipeline reads the windows "
                    "as a table",
                    spec.place(*path, "retain"),
                    "remove it; windows of a relation with emission: {type: immediate} are a table "
                    "for a GROUP BY over them, and for who joins them",
                )
            if (
                "ttl" in aggregation.model_fields_set
                and groups
                and all(g in tables for g in groups)
            ):
                yield ModelError(
                    "aggregation.ttl has no effect: a group of rows of tables ends with its last "
                    "row",
                    spec.place(*path, "ttl"),
                    "remove it; topics.<topic>.retain deletes rows that are old",
                )


def _without_effect(
    spec: PipelineSpec, said: AggregationSpec, path: Path, groups: Sequence[GroupShape]
) -> Iterator[ModelError]:
    if not groups:
        yield ModelError(
            "'aggregation' has no effect: there is no GROUP BY or DISTINCT that it is about",
            spec.place(*path),
            "remove it, or add GROUP BY to the query",
        )
        return
    windows = [group for group in groups if group.window is not None]
    for key in sorted(said.model_fields_set):
        if key in _OF_WINDOWS and not windows:
            yield ModelError(
                f"aggregation.{key} has no effect: without a window no record is late",
                spec.place(*path, key),
                "remove it, or GROUP BY a window, such as tumble(INTERVAL 5 MINUTE)",
            )
        elif key == "retain" and not windows:
            yield ModelError(
                "aggregation.retain has no effect: without a window no group is closed",
                spec.place(*path, key),
                "remove it; aggregation.ttl forgets groups without new records",
            )
        elif key == "ttl" and len(windows) == len(groups):
            yield ModelError(
                "aggregation.ttl has no effect: the groups of a window end with it",
                spec.place(*path, key),
                "remove it; aggregation.grace says how long a window takes late records",
            )
