"""Side outputs of a pipeline: what sees which rows, and what is wrong with it."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.sinks import SideOutput
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plugins.options import wrong_options
from kaflow_engine.plugins.side_outputs import side_output_plugin


def wrong_side_outputs(spec: PipelineSpec) -> Iterator[ModelError]:
    """Yield an error for each side output that is not installed, or has wrong options."""
    for write in spec.writes:
        for number, said in enumerate(write.output.side_outputs):
            at = (*write.at, "side_outputs", number)
            try:
                kind = side_output_plugin(said.type)
            except ModelError as error:
                error.at = spec.place(*at, "type")
                yield error
                continue
            places = {name: spec.place(*at, "options", name) for name in ("", *said.options)}
            yield from wrong_options(said.type, kind.options, said.options, places)


def side_outputs(spec: PipelineSpec) -> tuple[SideOutput, ...]:
    """Return what sees the rows of outputs."""
    return tuple(
        SideOutput(
            target=write.target, plugin=said.type, options=tuple(sorted(said.options.items()))
        )
        for write in spec.writes
        for said in write.output.side_outputs
    )
