"""The columns of sources that are no topics, as their first records show them."""

from kaflow_engine.connectors.sources import source_kind
from kaflow_engine.errors import SourceError
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.sources import source_params


def columns_of_source(spec: PipelineSpec, name: str) -> tuple[Column, ...]:
    """Return the columns of a source that declares none.

    Raises:
        SourceError: It has no record yet, or cannot be read.
    """
    said, params = spec.sources[name], source_params(spec, name)
    at = spec.place("sources", name)
    try:
        found = source_kind(said.type).sample(params, format_of(said.value_format))
    except SourceError as error:
        raise type(error)(error.message, at, error.hint) from error
    if found is None:
        raise SourceError(
            f"source '{name}' has no record yet, so its columns are not known",
            at,
            f"declare sources.{name}.columns, or start again when it has a first record",
        )
    return found
