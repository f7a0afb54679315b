"""What the author of a pipeline says of its transforms, as plans carry it."""

from typing import assert_never

from kaflow_engine.errors import Location
from kaflow_engine.flow.transforms import HandlerParams, ScriptParams, TransformParams
from kaflow_engine.model.relations.script_texts import script_text
from kaflow_engine.model.relations.transform_specs import AnyTransform, HandlerSpec, ScriptSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.transforms.rows import TransformText


def transform_text(spec: PipelineSpec, name: str) -> TransformText:
    """Return what is said of a transform.

    Raises:
        ModelError: Its text cannot be read.
    """
    said = spec.transforms[name]
    return TransformText(
        name=name,
        of=said.from_,
        params=transform_params(spec, name, said),
        schema=said.schema_,
        at=spec.place("relations", name),
        places={c: spec.place("relations", name, "schema", c) for c in said.schema_},
    )


def transform_params(spec: PipelineSpec, name: str, said: AnyTransform) -> TransformParams:
    """Return the settings of a transform in a plan.

    Raises:
        ModelError: Its text cannot be read.
    """
    match said:
        case ScriptSpec():
            return ScriptParams(
                language=said.language,
                text=script_text(spec, name, said).text,
                timeout=said.timeout,
                memory=said.memory,
            )
        case HandlerSpec():
            return HandlerParams(
                url=said.url,
                headers=tuple(sorted(said.headers.items())),
                secret_headers=tuple(sorted(said.secret_headers.items())),
                secret=said.secret,
                batch=said.batch,
                concurrency=said.concurrency,
                envelope=said.envelope,
                timeout=said.timeout,
                retry_for=said.retry_for,
            )
        case _:
            assert_never(said)


def place_in(spec: PipelineSpec, name: str, said: AnyTransform, key: str) -> Location:
    """Return where the text under a key of a transform begins.

    Raises:
        ModelError: The text cannot be read.
    """
    match said:
        case ScriptSpec() if key == "script":
            return script_text(spec, name, said).start
        case _:
            return spec.place("relations", name, key)
