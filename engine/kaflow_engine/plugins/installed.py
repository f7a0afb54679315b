"""Kinds of sinks, sources, transforms and more that installed packages offer, as entry points."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kaflow_engine.errors import ModelError, UnknownName

SINKS, SOURCES, TRANSFORMS = "kaflow.sinks", "kaflow.sources", "kaflow.transforms"
FORMATS, PREPROCESSORS = "kaflow.formats", "kaflow.preprocessors"
SIDE_OUTPUTS = "kaflow.side_outputs"
"""Groups of entry points."""
VERSION = 3
"""Of the contracts of plugins; one that names none is of the first."""

_PARTS = {
    SINKS: ("outlet", "capabilities", "unfit", "options"),
    SOURCES: ("options", "replays", "bounded", "columns", "open"),
    TRANSFORMS: ("options", "columns", "open"),
    FORMATS: ("columns", "unfit", "decode", "encode"),
    PREPROCESSORS: ("options", "rewrite"),
    SIDE_OUTPUTS: ("options", "open"),
}
_SEE = {
    SINKS: ("kind of sink", "see PluginKind and SinkKind of kaflow_engine.api.sinks"),
    SOURCES: ("kind of source", "see SourcePluginKind of kaflow_engine.api.sources"),
    TRANSFORMS: ("kind of transform", "see TransformPluginKind of kaflow_engine.api.transforms"),
    FORMATS: ("format", "see FormatPlugin of kaflow_engine.api.formats"),
    PREPROCESSORS: (
        "preprocessor",
        "see PreprocessorPlugin of kaflow_engine.api.preprocessors",
    ),
    SIDE_OUTPUTS: ("kind of side output", "see SideOutputKind of kaflow_engine.api.side_outputs"),
}


def installed(group: str) -> Mapping[str, EntryPoint]:
    """Return the kinds that packages of this environment offer, by `<namespace>.<name>`."""
    return {each.name: each for each in entry_points(group=group) if "." in each.name}


@lru_cache(maxsize=64)
def loaded(group: str, name: str) -> Any:
    """Return the kind that a package offers under a name, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is not what the group has.
    """
    here = installed(group)
    if name not in here:
        raise _unknown(group, name, here)
    found = here[name]
    called = f"plugin '{name}' ({found.value})"
    try:
        kind = found.load()()
    except Exception as error:
        raise ModelError(
            f"{called} cannot be loaded: {type(error).__name__}: {error}",
            hint="an entry point names a class that is made without arguments",
        ) from error
    version = getattr(kind, "contract", 1)
    if not isinstance(version, int):
        raise ModelError(
            f"{called} has the contract {version!r}, which is not a whole number",
            hint=f"write contract = {VERSION} in its class",
        )
    if version > VERSION:
        raise ModelError(
            f"{called} is written for version {version} of the contract of plugins, and this one "
            f"is {VERSION}",
            hint="install a later kaflow-dagster, or an earlier version of the package",
        )
    if not hasattr(kind, "with_options"):  # else what that makes has the parts
        require_parts(group, called, kind)
    return kind


def require_parts(group: str, called: str, kind: object) -> None:
    """Look whether something has all that kinds of a group have.

    Raises:
        ModelError: It has not.
    """
    what, see = _SEE[group]
    missing = [part for part in _PARTS[group] if not hasattr(kind, part)]
    if missing:
        raise ModelError(f"{called} is no {what}: it lacks '{missing[0]}'", hint=see)


def _unknown(group: str, name: str, here: Mapping[str, EntryPoint]) -> ModelError:
    error = UnknownName("plugin", name, here)
    if error.nearest is None:
        package = f"install its package, which has an entry point of '{group}'"
        others = [_SEE[each][0] for each in _SEE if each != group and name in installed(each)]
        if others:
            package = f"it is a {others[0]}; {package}"
        known = f"; installed are: {', '.join(sorted(here))}" if here else ""
        error.hint = f"{package}{known}"
    return error


def forget_loaded() -> None:
    """Look again for what is installed."""
    loaded.cache_clear()
