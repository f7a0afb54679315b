"""What `emission` asks of GROUP BY, and cannot be done or has no effect."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import place_of
from kaflow_engine.plan.planner.outputs.output import BranchParts


def wrong_emission(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield what is said of when groups leave, and does not fit them."""
    yield from _final(spec, branches)
    yield from _late_updates(spec, branches)
    yield from _coalescing(spec, branches)


def _final(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    grouped = [branch for branch in branches if branch.groups]
    if spec.emission.type == "final":
        for branch in grouped:
            last = next((g.shape for g in reversed(branch.groups) if not g.shape.appends), None)
            if last is not None and last.window is None:
                yield ModelError(
                    f"final emission needs a window, and the GROUP BY at "
                    f"{place_of(spec, branch.write, last)} has none: its groups never end",
                    spec.place("emission", "type"),
                    "add a window, such as GROUP BY tumble(INTERVAL 5 MINUTE), or remove it",
                )
    if grouped and spec.on_dimension_update == "reemit":
        yield ModelError(
            "'on_dimension_update: reemit' does not work with GROUP BY or DISTINCT: a row that is "
            "formed again would count twice",
            spec.place("on_dimension_update"),
            "remove it, or group the rows of a topic that another pipeline writes",
        )


def _late_updates(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Windows must end before they are closed."""
    if not spec.emission.late_updates:
        return
    ended = [b for b in branches if b.groups and b.groups[-1].settings.leaves == "ended"]
    place = spec.place("emission", "late_updates")
    if not ended:
        yield ModelError(
            "emission.late_updates has no effect: no row of a window leaves",
            place,
            "remove it, or GROUP BY a window, such as tumble(INTERVAL 5 MINUTE), last",
        )
    for branch in ended:
        group = branch.groups[-1]
        if group.settings.grace == 0:
            yield ModelError(
                f"emission.late_updates has no effect on the window at "
                f"{place_of(spec, branch.write, group.shape)}: it is closed when it ends, and no "
                "late row comes into it",
                place,
                "set aggregation.grace to how long after its end it takes late rows, or remove it",
            )


def _coalescing(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Each `coalesce` must concern changes of a table."""
    tables = {branch.write.at for branch in branches if branch.is_table}
    writes: dict[Path, Write] = {branch.write.at: branch.write for branch in branches}
    hint = "remove it: only changes of groups without a final window are put together"
    for at, write in writes.items():
        if write.output.coalesce is not None and at not in tables:
            text = "'coalesce' has no effect: each row of this output is one of its own"
            yield ModelError(text, spec.place(*at, "coalesce"), hint)
    if "coalesce" in spec.emission.model_fields_set and not tables:
        text = "emission.coalesce has no effect: each row is one of its own"
        yield ModelError(text, spec.place("emission", "coalesce"), hint)
