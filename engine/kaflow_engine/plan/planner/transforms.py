"""What is wrong with transforms before they run."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError, Problems
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.transform.kinds import transform_kind
from kaflow_engine.sql.named.transforms import place_in, transform_text
from kaflow_engine.sql.syntax import at_line


def wrong_transforms(spec: PipelineSpec) -> Iterator[ModelError]:
    """Yield what is wrong with the transforms of a pipeline."""
    for name, said in spec.transforms.items():
        try:
            params = transform_text(spec, name).params
            for mistake in transform_kind(params.type).mistakes(params):
                start = place_in(spec, name, said, mistake.key)
                place = at_line(start, mistake.line) or start
                text = f"{mistake.key} of '{name}': {mistake.message}"
                yield ModelError(text, place, mistake.hint)
        except Problems as problems:
            yield from problems.errors
        except ModelError as error:
            at = error.at or spec.place("relations", name, "type")
            yield ModelError(error.message, at, error.hint)
