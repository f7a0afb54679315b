"""What the author of a pipeline says of its transforms, as plans carry it."""

from collections.abc import Mapping
from typing import assert_never

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.flow.transforms import (
    HandlerParams,
    PluginTransformParams,
    ScriptParams,
    TransformParams,
)
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.plugin_options import Option
from kaflow_engine.model.relations.script_fields import fields_set, line_of
from kaflow_engine.model.relations.script_texts import script_text
from kaflow_engine.model.relations.transform_specs import (
    AnyTransform,
    HandlerSpec,
    PluginTransformSpec,
    ScriptSpec,
)
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plugins.options import wrong_options
from kaflow_engine.plugins.transforms import TransformPluginKind, transform_plugin
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.transforms.rows import TransformText


def transform_text(spec: PipelineSpec, name: str) -> TransformText:
    """Return what is said of a transform.

    Raises:
        ModelError: Its text cannot be read, or its plugin says no columns.
    """
    said = spec.transforms[name]
    schema = _schema(spec, name, said)
    return TransformText(
        name=name,
        of=said.from_,
        params=transform_params(spec, name, said),
        schema=schema,
        adds=said.adds if isinstance(said, ScriptSpec) else {},
        at=spec.place("relations", name),
        places={c: spec.place("relations", name, "schema", c) for c in schema},
        sets=_sets(spec, name, said),
    )


def _sets(spec: PipelineSpec, name: str, said: AnyTransform) -> Mapping[str, tuple[str, Location]]:
    """Return the fields that the text of a script sets, and where."""
    if not isinstance(said, ScriptSpec):
        return {}
    found = script_text(spec, name, said)
    start = found.start
    return {
        field: (kind, at_line(start, line_of(found.text, field)) or start)
        for field, kind in fields_set(found.text).items()
    }


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
                op_column=said.op_column,
                timeout=said.timeout,
                retry_for=said.retry_for,
            )
        case PluginTransformSpec():
            options = tuple(sorted(said.options.items()))
            return PluginTransformParams(plugin=said.type, options=options)
        case _:
            assert_never(said)


def _schema(spec: PipelineSpec, name: str, said: AnyTransform) -> Mapping[str, str | None]:
    """Return what changes of the columns: what a plugin says, and what its author says beside."""
    if not isinstance(said, PluginTransformSpec):
        return said.schema_
    path = ("relations", name, "options")
    places = {option: spec.place(*path, option) for option in ("", *said.options)}
    try:
        kind = transform_plugin(said.type)
        raise_all(wrong_options(said.type, kind.options, said.options, places))
        found = _columns(said.type, kind, said.options)
    except ModelError as error:
        error.at = error.at or spec.place("relations", name, "type")
        raise
    return {**found, **said.schema_}


def _columns(
    called: str, kind: TransformPluginKind, options: Mapping[str, Option]
) -> Mapping[str, str | None]:
    """Ask a plugin which columns its transform with these options changes.

    Raises:
        ModelError: It fails.
    """
    try:
        return kind.columns(kind.options.model_validate(dict(options)))
    except Exception as error:
        raise ModelError(
            f"plugin '{called}' fails at 'columns': {type(error).__name__}: {error}",
            hint="correct the plugin",
        ) from error


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
