"""Which class a data source of PySpark is; a package or the configuration says so, never a file."""

import inspect
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from kaflow_engine.errors import SourceUnfit

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

GROUP = "kaflow.pyspark"
"""The group of entry points; each is called as its format is."""
MODULE = "kaflow.module"
"""Among the settings of a data source: the module that the configuration names."""


def installed_formats() -> Mapping[str, EntryPoint]:
    """Return the data sources that packages of this environment offer, by their formats."""
    return {each.name: each for each in entry_points(group=GROUP)}


def data_source(
    format_name: str, options: Mapping[str, str], settings: Mapping[str, str]
) -> "DataSource":
    """Return a data source with its options.

    Args:
        format_name: What it is called.
        options: What the author says.
        settings: What the configuration says; both are its options.

    Raises:
        SourceUnfit: There is no such class, or it refuses the options.
    """
    from pyspark.sql.datasource import CaseInsensitiveDict

    found = _class(format_name, settings.get(MODULE))
    own = {name: value for name, value in settings.items() if name != MODULE}
    called = f"data source '{format_name}'"
    try:
        return found(CaseInsensitiveDict({**options, **own}))
    except Exception as error:
        raise SourceUnfit(
            f"{called} cannot be made: {type(error).__name__}: {error}",
            hint="correct its 'options'",
        ) from error


def _class(format_name: str, module: str | None) -> "type[DataSource]":
    if module is None:
        return _of_entry_point(format_name)
    from pyspark.sql.datasource import DataSource

    try:
        loaded = import_module(module)
    except Exception as error:
        raise _unloadable(format_name, f"module '{module}'", error) from error
    found = [
        each
        for _, each in inspect.getmembers(loaded, inspect.isclass)
        if issubclass(each, DataSource) and _format_of(each) == format_name
    ]
    if len(found) != 1:
        known = sorted(
            _format_of(each)
            for _, each in inspect.getmembers(loaded, inspect.isclass)
            if issubclass(each, DataSource) and each is not DataSource
        )
        said = f"it has: {', '.join(known)}" if known else "it has no data source"
        raise SourceUnfit(
            f"module '{module}' has {len(found)} data sources called '{format_name}'",
            hint=f"correct plugins.pyspark:{format_name}.module in the configuration; {said}",
        )
    return found[0]


def _of_entry_point(format_name: str) -> "type[DataSource]":
    from pyspark.sql.datasource import DataSource

    known = installed_formats()
    if format_name not in known:
        raise SourceUnfit(
            f"no package offers the data source '{format_name}'", hint=where_to_name(format_name)
        )
    entry = known[format_name]
    try:
        found: Any = entry.load()
    except Exception as error:
        raise _unloadable(format_name, entry.value, error) from error
    if not (inspect.isclass(found) and issubclass(found, DataSource)):
        raise SourceUnfit(
            f"data source '{format_name}' ({entry.value}) is no class of PySpark's DataSource",
            hint=f"correct the entry point of group '{GROUP}' of its package",
        )
    return found


def where_to_name(format_name: str) -> str:
    """Say where the class of a data source is named."""
    return (
        f"install its package, which has an entry point of '{GROUP}', or write plugins: "
        f"{{'pyspark:{format_name}': {{module: <module>}}}} in the configuration"
    )


def _format_of(found: "type[DataSource]") -> str:
    return str(found.name())


def _unloadable(format_name: str, where: str, error: Exception) -> SourceUnfit:
    return SourceUnfit(
        f"data source '{format_name}' ({where}) cannot be loaded: {type(error).__name__}: {error}",
        hint="install its package into the environment of kaflow",
    )
