"""`every`: how often a key of an output sends a change, and what is asked of it in vain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.chains.chain import STATES
from kaflow_engine.flow.numbers import timed_state
from kaflow_engine.flow.sinks import Sink, TopicSink
from kaflow_engine.flow.timed import Throttle
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.pipelines.own_settings import as_said_by, owner_of_rows, owners
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import pace
from kaflow_engine.plan.planner.outputs.output import BranchParts, OutputParts


def throttled(
    spec: PipelineSpec,
    outputs: Sequence[OutputParts],
    sinks: Sequence[Sink],
    chains: Mapping[str, int],
) -> tuple[tuple[Throttle, ...], tuple[Sink, ...]]:
    """Return what holds changes back, and the sinks behind it.

    Args:
        spec: What the author wrote.
        outputs: Of the pipeline.
        sinks: Of each output the sink, without anything before it.
        chains: The numbers of the chains of projections, by their ids.
    """
    found: list[Throttle] = []
    behind: list[Sink] = []
    for output, sink in zip(outputs, sinks, strict=True):
        every = pace(spec, output.write)
        changes = any(branch.is_table for branch in output.branches)
        if every is None or not changes or not isinstance(sink, TopicSink):
            behind.append(sink)
            continue
        chain = chains[sink.inputs[0]]
        number = 1 + sum(each.state // STATES == chain for each in found)
        throttle = Throttle(
            id=f"throttle:{sink.target}",
            state=timed_state(chain, number),
            inputs=sink.inputs,
            every=every,
        )
        found.append(throttle)
        behind.append(
            replace(sink, inputs=(*sink.inputs, throttle.id), exchange=False, coalesced=True)
        )
    return tuple(found), tuple(behind)


def wrong_pace(spec: PipelineSpec, branches: Sequence[BranchParts]) -> Iterator[ModelError]:
    """Yield each `every` that concerns no changes of a table, or stands beside `coalesce: none`."""
    tables = {branch.write.at for branch in branches if branch.is_table}
    writes: dict[Path, Write] = {branch.write.at: branch.write for branch in branches}
    hint = "remove it: only changes of groups without a final window, and of tables, are held back"
    for at, write in writes.items():
        if write.output.every is None:
            continue
        if at not in tables:
            text = "'every' has no effect: each row of this output is one of its own"
            yield ModelError(text, spec.place(*at, "every"), hint)
        elif write.output.coalesce == "none":
            yield _not_each(spec, (*at, "every"))
    for owner in ((), *owners(spec, "emission")):
        said = as_said_by(spec, owner)
        own = [at for at, each in writes.items() if owner_of_rows(spec, each, "emission") == owner]
        if said.emission.every is None:
            continue
        if owner and not own:
            yield without_an_output(said, "every")
        elif not tables & {*own}:
            text = "emission.every has no effect: each row is one of its own"
            yield ModelError(text, said.place("emission", "every"), hint)
        elif said.emission.coalesce == "none":
            yield _not_each(said, ("emission", "every"))


def without_an_output(said: PipelineSpec, key: str) -> ModelError:
    """Return the error of a key of changes at a relation that no output writes as it is."""
    return ModelError(
        f"emission.{key} has no effect: no output writes the changes of this query as they are",
        said.place("emission", key),
        f"write {key} at the output that they end in, or remove it",
    )


def _not_each(spec: PipelineSpec, at: Path) -> ModelError:
    return ModelError(
        "'every' holds changes back, and 'coalesce: none' sends each of them",
        spec.place(*at),
        "remove one of the two",
    )
