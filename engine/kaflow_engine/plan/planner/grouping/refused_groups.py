"""What is asked of GROUP BY, windows and outputs together, and cannot be done or has no effect."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.pipelines.own_settings import as_said_by, owners
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.group_keys import is_group_key
from kaflow_engine.plan.planner.grouping.refused_aggregation import wrong_aggregation
from kaflow_engine.plan.planner.grouping.refused_emission import wrong_emission
from kaflow_engine.plan.planner.grouping.refused_transforms import (
    is_made_of_groups,
    wrong_transforms,
)
from kaflow_engine.plan.planner.grouping.refused_unions import wrong_unions
from kaflow_engine.plan.planner.grouping.settings import place_of
from kaflow_engine.plan.planner.outputs.connector import wrong_rows
from kaflow_engine.plan.planner.outputs.output import BranchParts, OutputParts
from kaflow_engine.plan.planner.outputs.throttle import wrong_pace
from kaflow_engine.plan.planner.tables.keys import TableKeys, is_key, key_output, query_key
from kaflow_engine.sql.shape import BATCH_TIME, GroupShape


def wrong_keys(
    spec: PipelineSpec, outputs: Sequence[OutputParts], keys: TableKeys
) -> Iterator[ModelError]:
    """Yield an error for each output that cannot hold one row for each group, or for each key of a
    table."""
    for output in outputs:
        found = (error for branch in output.branches for error in _wrong_branch(spec, branch, keys))
        yield from {(str(error.at), error.message): error for error in found}.values()


def _wrong_branch(spec: PipelineSpec, branch: BranchParts, keys: TableKeys) -> Iterator[ModelError]:
    write = branch.write
    if write.sink is not None:
        yield from wrong_rows(spec, branch, write.sink)
    if branch.is_table and not branch.groups:
        yield from _wrong_table(spec, branch, keys)
    elif write.output.table is not None and is_made_of_groups(branch):
        yield ModelError(
            f"table '{write.output.table}' cannot hold what a transform or a join makes of "
            "groups: there only its group tells a row from others",
            spec.place(*write.at, "table"),
            "write them to a topic, and that topic into a table in another pipeline",
        )
    elif (
        branch.groups
        and write.output.table is not None
        and (what := _never_again(branch.groups[-1].shape)) is not None
    ):
        yield ModelError(
            f"table '{write.output.table}' cannot hold {what}: a backfill could not make them "
            "again",
            spec.place(*write.at, "table"),
            "write them to a topic, and that topic into a table in another pipeline",
        )
    elif branch.is_table and write.output.table is not None:
        yield ModelError(
            f"table '{write.output.table}' cannot hold groups that change: a row of it stays "
            "as it is",
            spec.place(*write.at, "table"),
            "remove emission.late_updates, or write to a topic"
            if branch.groups[-1].settings.leaves == "ended"
            else "group by a window, such as tumble(INTERVAL 5 MINUTE), with emission: "
            "{type: final}, or write to a topic",
        )
    elif (
        branch.is_table
        and branch.key is not None
        and not is_group_key(branch.shape, branch.key_parts, write.output.key_format)
    ):
        given = ", ".join(write.output.key_columns)
        yield ModelError(
            f"the key '{given or branch.key.name}' is not what the query groups by: two "
            "groups would overwrite each other",
            spec.place(*write.at, "key") if given else spec.place(*write.query_at),
            "remove it: the key of a record is then its group",
        )


def _wrong_table(spec: PipelineSpec, branch: BranchParts, keys: TableKeys) -> Iterator[ModelError]:
    write, shape = branch.write, branch.shape
    if write.output.table is not None:
        yield ModelError(
            f"table '{write.output.table}' cannot hold the rows of a table, which change and go",
            spec.place(*write.at, "table"),
            "write them to a topic, which is then compacted",
        )
        return
    key, given = branch.key, ", ".join(write.output.key_columns)
    own = query_key(shape, keys)
    if (
        key is None
        or is_key(own, branch.key_parts, shape.discriminator)
        or key == key_output(own, shape.outputs[:-1], shape.discriminator, write.output.key_format)
    ):
        return
    yield ModelError(
        f"the key '{given or key.name}' is not the key of the table: two rows would overwrite "
        "each other",
        spec.place(*write.at, "key") if given else spec.place(*write.query_at),
        "remove it: the key of a record is then that of its row",
    )


def wrong_groups(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield what cannot be done with the groups of a pipeline, and what has no effect on them."""
    beside = {each for branch in branches for each in branch.shape.beside}
    yield from wrong_unions(spec, branches)
    branches = [
        replace(each, groups=each.groups[:-1]) if each.shape in beside else each
        for each in branches
    ]
    yield from wrong_emission(spec, branches)
    for branch in branches:
        yield from _grouped_twice(spec, branch)
        yield from _at_batch_time(spec, branch)
    yield from wrong_transforms(spec, branches)
    yield from _required(spec, branches)
    yield from wrong_aggregation(spec, branches)
    yield from wrong_pace(spec, branches)


def _grouped_twice(spec: PipelineSpec, branch: BranchParts) -> Iterator[ModelError]:
    for before, group in zip(branch.groups, branch.groups[1:], strict=False):
        if before.shape.run is not None and group.shape.window is not None:
            yield SqlError(
                "a window over runs of rows is not supported: their rows leave long after the "
                "records that they are made of",
                place_of(spec, branch.write, group.shape),
                "put the window below the runs, or write the runs to a topic, and read that one",
            )
        if group.shape.run is not None and group.shape.run.per_partition:
            yield SqlError(
                "runs of each source partition over groups: the rows of a group come from several "
                "partitions",
                place_of(spec, branch.write, group.shape),
                "remove per: partition",
            )
        if group.shape.append is not None:
            if not before.settings.is_table:
                yield SqlError(
                    f"the rows of '{group.shape.append.of}' leave once, when their window is "
                    "closed, and have no changes",
                    place_of(spec, branch.write, group.shape),
                    f"name '{group.shape.append.of}' itself after FROM; or set "
                    "emission.late_updates, with aggregation.grace",
                )
            continue
        if not before.settings.is_table:
            continue
        if group.shape.transform is not None:
            continue  # refused beside
        if group.shape.window is not None:
            yield SqlError(
                "a window over groups without a window is not supported: such groups change, and "
                "are at no time over",
                place_of(spec, branch.write, group.shape),
                "add the window to the GROUP BY inside, or write it to a topic of its own",
            )


def _at_batch_time(spec: PipelineSpec, branch: BranchParts) -> Iterator[ModelError]:
    """A row of a table is computed again when it is replaced: it must be what it was."""
    tables = [group.settings.is_table for group in branch.groups]
    if branch.shape.is_table or not any(tables):
        return
    groups = branch.groups[tables.index(True) :]
    behind = [expr for _, expr in branch.columns]
    behind += [expr for group in groups for expr in group.shape.where]
    behind += [expr for group in groups[1:] for expr in group.shape.expressions]
    if any(identifier(BATCH_TIME) in expr.sql for expr in behind):
        yield SqlError(
            "now() over groups that change is not supported: their rows would have to change "
            "whenever time passes",
            place_of(spec, branch.write, groups[0].shape),
            "use it where the rows are that are grouped, or write the groups to a topic, and read "
            "that one",
        )


def refuse_better_rows(
    spec: PipelineSpec, branches: Sequence[BranchParts], left: Sequence[str]
) -> None:
    """Refuse GROUP BY over a LEFT JOIN of events whose rows leave more than once.

    Args:
        spec: What the author wrote, with the emission of the joins.
        branches: Those of the chain.
        left: Its sides that are events and need not match.

    Raises:
        SqlError: with the way out.
    """
    if not left or spec.emission.type in ("on_match", "final"):
        return
    for branch in branches:
        if branch.gathered:
            called = _called(branch.gathered[0].shape)
            raise SqlError(
                f"{called} over a LEFT JOIN of events ('{left[0]}'): a row leaves without a match, "
                "and again with each match that comes later, and would count twice",
                place_of(spec, branch.write, branch.gathered[0].shape),
                "set emission.type to on_match, so that rows leave once; or write INNER JOIN",
            )


def _never_again(group: GroupShape) -> str | None:
    """Return what rows are called that depend on when they were made; None of others."""
    if group.append is not None:
        return "changes of a table as rows"
    return "the rows of runs" if group.run is not None else None


def _called(group: GroupShape) -> str:
    if group.run is not None:
        return "a run of rows"
    return "DISTINCT" if group.distinct else "GROUP BY"


def _required(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    for owner in ((), *owners(spec, "emission")):
        for i, name in enumerate(as_said_by(spec, owner).emission.require):
            known = [branch for branch in branches if branch.shape.column(name)]
            if known and all(branch.groups for branch in known):
                made = all(branch.gathered for branch in known)
                of, done = ("groups", "grouped") if made else ("a transform", "transformed")
                yield ModelError(
                    f"the required column '{name}' is a column of {of}, and rows wait before they "
                    f"are {done}",
                    spec.place(*owner, "emission", "require", i),
                    f"remove it; WHERE … IS NOT NULL keeps incomplete rows out of {of}",
                )
