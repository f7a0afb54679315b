"""What `emission` asks of GROUP BY, and cannot be done or has no effect."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.pipelines.own_settings import as_said_by, owner_at, owner_of_rows, owners
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import owner_of, place_of, said_of
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.plan.planner.outputs.throttle import without_an_output
from kaflow_engine.sql.shape import GroupShape
from kaflow_engine.sql.syntax import at_line


def wrong_emission(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield what is said of when groups leave, and does not fit them."""
    yield from _final(spec, branches)
    for owner in ((), *owners(spec, "emission")):
        yield from _late_updates(spec, owner, branches)
        yield from _without_effect(spec, owner, branches)
        yield from _no_windows(spec, owner, branches)
    yield from _coalescing(spec, branches)


def _final(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    grouped = [branch for branch in branches if branch.gathered]
    for branch in grouped:
        last = next((g.shape for g in reversed(branch.groups) if not g.shape.appends), None)
        if last is None or _is_dynamic_table(spec, branch.write, last):
            continue
        said = said_of(spec, branch.write, last, "emission")
        if last.window is None and said.emission.type == "final":
            yield ModelError(
                f"final emission needs a window, and the GROUP BY at "
                f"{place_of(spec, branch.write, last)} has none: its groups never end",
                said.place("emission", "type"),
                "add a window, such as GROUP BY tumble(INTERVAL 5 MINUTE), or remove it",
            )
    if grouped and spec.on_dimension_update == "reemit":
        yield ModelError(
            "'on_dimension_update: reemit' does not work with GROUP BY or DISTINCT: a row that is "
            "formed again would count twice",
            spec.place("on_dimension_update"),
            "remove it, or group the rows of a topic that another pipeline writes",
        )


def _is_dynamic_table(spec: PipelineSpec, write: Write, group: GroupShape) -> bool:
    """Tell whether a GROUP BY is that of a dynamic table, whose values are there at once."""
    called, place = [said.lower() for said, _ in group.named], place_of(spec, write, group)
    return not group.calls and any(
        called == [each.key.lower()] and place == spec.place("relations", name)
        for name, each in spec.dynamic_tables.items()
    )


def _late_updates(
    spec: PipelineSpec, owner: Path, branches: Sequence[BranchParts]
) -> Iterator[ModelError]:
    """Windows must end before they are closed."""
    said = as_said_by(spec, owner)
    if not said.emission.late_updates:
        return
    ended = [
        (branch.write, group)
        for branch in branches
        for group in branch.groups
        if group.settings.leaves == "ended"
        and owner_of(spec, branch.write, group.shape, "emission") == owner
    ]
    place = said.place("emission", "late_updates")
    if not ended:
        yield ModelError(
            "emission.late_updates has no effect: no row of a window leaves",
            place,
            "remove it, or GROUP BY a window, such as tumble(INTERVAL 5 MINUTE), last",
        )
    for write, group in ended:
        if group.settings.grace == 0:
            yield ModelError(
                f"emission.late_updates has no effect on the window at "
                f"{place_of(spec, write, group.shape)}: it is closed when it ends, and no "
                "late row comes into it",
                place,
                "set aggregation.grace to how long after its end it takes late rows, or remove it",
            )


def _without_effect(
    spec: PipelineSpec, owner: Path, branches: Sequence[BranchParts]
) -> Iterator[ModelError]:
    """What a query says itself must concern joins or groups in it."""
    said = as_said_by(spec, owner)
    if not owner or "type" not in said.emission.model_fields_set:
        return
    joins = any(_joins_in(spec, owner, branch, "emission") for branch in branches)
    kind = said.emission.type
    if kind in ("smart", "on_match") and not joins:
        yield ModelError(
            f"{kind} emission is for joins of events, and there is none in this query",
            said.place("emission", "type"),
            "remove it, or write it at the query with the join",
        )
    groups = [
        group.shape
        for branch in branches
        for group in branch.groups
        if owner_of(spec, branch.write, group.shape, "emission") == owner
    ]
    if kind in ("immediate", "final") and not joins and not groups:
        yield ModelError(
            f"{kind} emission has no effect: there is no join of events and no GROUP BY in this "
            "query",
            said.place("emission", "type"),
            "remove it, or write it at the query with the GROUP BY or the join",
        )


def _no_windows(
    spec: PipelineSpec, owner: Path, branches: Sequence[BranchParts]
) -> Iterator[ModelError]:
    said = as_said_by(spec, owner)
    if said.emission.windows is None:
        return
    groups = (
        (branch.write, group.shape)
        for branch in branches
        for group in branch.groups
        if group.shape.window is not None
    )
    if all(owner_of(spec, write, shape, "emission") != owner for write, shape in groups):
        yield ModelError(
            "emission.windows has no effect: there is no window",
            said.place("emission", "windows"),
            "remove it, or GROUP BY a window, such as tumble(INTERVAL 5 MINUTE)",
        )


def _joins_in(spec: PipelineSpec, owner: Path, branch: BranchParts, key: str) -> bool:
    """Tell whether events are joined in the query of a relation or an output."""
    start = spec.place(*branch.write.query_at)
    lines = [join.line for join in branch.shape.joins]
    places = [at_line(start, line) or start for line in lines if not branch.shape.is_table]
    return any(owner_at(spec, branch.write, at, key) == owner for at in places)


def _coalescing(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Each `coalesce` must concern changes of a table."""
    tables = {branch.write.at for branch in branches if branch.is_table}
    writes: dict[Path, Write] = {branch.write.at: branch.write for branch in branches}
    hint = "remove it: only changes of groups without a final window are put together"
    for at, write in writes.items():
        if write.output.coalesce is not None and at not in tables:
            text = "'coalesce' has no effect: each row of this output is one of its own"
            yield ModelError(text, spec.place(*at, "coalesce"), hint)
    for owner in ((), *owners(spec, "emission")):
        said = as_said_by(spec, owner)
        own = [at for at, each in writes.items() if owner_of_rows(spec, each, "emission") == owner]
        if "coalesce" not in said.emission.model_fields_set:
            continue
        if owner and not own:
            yield without_an_output(said, "coalesce")
        elif not tables & {*own}:
            text = "emission.coalesce has no effect: each row is one of its own"
            yield ModelError(text, said.place("emission", "coalesce"), hint)
