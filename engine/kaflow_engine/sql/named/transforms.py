"""What the author of a pipeline says of its transforms, as plans carry it."""

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.transforms import ScriptParams, TransformParams
from kaflow_engine.model.relations.transform_specs import ScriptSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.groups.transforms import TransformText


def transform_text(spec: PipelineSpec, name: str) -> TransformText:
    """Return what is said of a transform.

    Raises:
        ModelError: Its text cannot be read.
    """
    said = spec.transforms[name]
    return TransformText(
        name=name,
        of=said.from_,
        params=_params(spec, name, said),
        schema=said.schema_,
        at=spec.place("relations", name),
        places={c: spec.place("relations", name, "schema", c) for c in said.schema_},
    )


def _params(spec: PipelineSpec, name: str, said: ScriptSpec) -> TransformParams:
    if said.script is None or said.language == "typescript":
        raise ModelError("not yet", spec.place("relations", name))
    return ScriptParams(
        language=said.language, text=said.script, timeout=said.timeout, memory=said.memory
    )
