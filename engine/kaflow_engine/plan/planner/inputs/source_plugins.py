"""Sources of packages: which options each kind takes, and which are wrong."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from kaflow_engine.connectors.plugins import source_plugin
from kaflow_engine.connectors.pyspark.classes import installed_formats, where_to_name
from kaflow_engine.connectors.pyspark.type_names import unfit
from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.origins.plugins import JournalledPluginParams, PluginParams
from kaflow_engine.formats.types import parse_type
from kaflow_engine.model.config import Config
from kaflow_engine.model.sources.plugin_specs import PluginSourceSpec, PySparkSourceSpec
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plugins.options import wrong_options


def wrong_source_plugins(spec: PipelineSpec, config: Config) -> Iterator[ModelError]:
    """Yield an error for each source of a package that is not installed, or has wrong options.

    Args:
        spec: What the author wrote.
        config: For what it says of plugins.
    """
    for name, said in spec.sources.items():
        match said:
            case PluginSourceSpec():
                yield from _wrong_plugin(spec, name, said)
            case PySparkSourceSpec():
                yield from _wrong_format(spec, config, name, said)
            case _:
                continue
        yield from _said_twice(spec, config, name, said)


def plugin_params(
    spec: PipelineSpec, name: str, said: PluginSourceSpec
) -> PluginParams | JournalledPluginParams:
    """Return the settings of a source of a plugin.

    Raises:
        ModelError: The plugin is not there, or refuses its options.
    """
    try:
        kind = source_plugin(said.type)
        for error in _wrong_of(spec, name, said, kind.options):
            raise error
        bounded = bool(_asked(said, "bounded"))
    except ModelError as error:
        error.at = error.at or spec.place("sources", name, "type")
        raise
    options = tuple(said.options.items())
    if kind.replays:
        return PluginParams(type=said.type, bounded=bounded, options=options)
    return JournalledPluginParams(
        type=said.type, bounded=bounded, options=options, max_backlog=said.max_backlog
    )


def replays(said: SourceSpec) -> bool:
    """Tell whether a source is of a plugin that can give each range again."""
    return isinstance(said, PluginSourceSpec) and source_plugin(said.type).replays


def ends(said: SourceSpec) -> bool:
    """Tell whether a run reads all there is of a source, and then ends."""
    return bool(_asked(said, "bounded")) if isinstance(said, PluginSourceSpec) else said.ends


def plugin_columns(spec: PipelineSpec, name: str) -> Mapping[str, str] | None:
    """Return the columns that the plugin of a source gives; None: it says none, or cannot."""
    said = spec.sources.get(name)
    if not isinstance(said, PluginSourceSpec):
        return None
    try:
        return _asked(said, "columns")
    except (ModelError, ValidationError):
        return None  # `wrong_source_plugins` reports it


def _wrong_plugin(spec: PipelineSpec, name: str, said: PluginSourceSpec) -> Iterator[ModelError]:
    try:
        kind = source_plugin(said.type)
    except ModelError as error:
        error.at = spec.place("sources", name, "type")
        yield error
        return
    wrong = tuple(_wrong_of(spec, name, said, kind.options))
    yield from wrong
    if kind.replays and "max_backlog" in said.model_fields_set:
        yield ModelError(
            f"'max_backlog' has no meaning for '{said.type}': it has no journal",
            spec.place("sources", name, "max_backlog"),
            "remove it",
        )
    if wrong:
        return
    try:
        known = said.columns or _asked(said, "columns")
        _asked(said, "bounded")
    except ModelError as error:
        error.at = spec.place("sources", name, "type")
        yield error
        return
    if not known:
        yield ModelError(
            f"the columns of '{name}' are not known: '{said.type}' says none",
            spec.place("sources", name),
            "add columns: {<name>: <type>}",
        )


def _wrong_format(
    spec: PipelineSpec, config: Config, name: str, said: PySparkSourceSpec
) -> Iterator[ModelError]:
    own = config.plugins.get(said.type)
    known = installed_formats()
    if (own is None or own.module is None) and said.format not in known:
        error = UnknownName("data source", said.format, known, spec.place("sources", name, "type"))
        if error.nearest is None:
            error.hint = where_to_name(said.format)
        yield error
    for column, text in (said.columns or {}).items():
        wrong = _unfit(text)
        if wrong is not None:
            yield ModelError(
                f"PySpark has no type {wrong}, which column '{column}' of '{name}' is of",
                spec.place("sources", name, "columns", column),
                "declare a type that PySpark has, such as BIGINT, DOUBLE or VARCHAR",
            )
    if said.read == "batch" and "interval" in said.model_fields_set:
        yield ModelError(
            f"'interval' of '{name}' has no meaning for read: batch, which reads once",
            spec.place("sources", name, "interval"),
            "remove it",
        )


def _unfit(text: str) -> str | None:
    try:
        return unfit(parse_type(text))
    except ModelError:  # what is no type at all is reported elsewhere
        return None


def _said_twice(
    spec: PipelineSpec, config: Config, name: str, said: PluginSourceSpec | PySparkSourceSpec
) -> Iterator[ModelError]:
    own = config.plugins.get(said.type)
    if own is None or isinstance(said, PluginSourceSpec):
        return  # a plugin is handed both, each by itself
    for option in said.options:
        if option in own.settings:
            yield ModelError(
                f"option '{option}' of '{said.type}' is set in the configuration, too",
                spec.place("sources", name, "options", option),
                f"remove it here, or under plugins.{said.type}.settings",
            )


def _wrong_of(
    spec: PipelineSpec, name: str, said: PluginSourceSpec, takes: type[BaseModel]
) -> Iterator[ModelError]:
    path: Path = ("sources", name, "options")
    places = {option: spec.place(*path, option) for option in ("", *said.options)}
    yield from wrong_options(said.type, takes, said.options, places)


def _asked(said: PluginSourceSpec, what: Literal["bounded", "columns"]) -> Any:
    """Ask a plugin about a source with these options.

    Raises:
        ModelError: The plugin is not there, or it fails.
    """
    kind = source_plugin(said.type)
    options = kind.options.model_validate(dict(said.options))
    try:
        return getattr(kind, what)(options)
    except Exception as error:
        raise ModelError(
            f"plugin '{said.type}' fails at '{what}': {type(error).__name__}: {error}",
            hint="correct the plugin",
        ) from error
