"""Kinds of sinks that installed packages offer, as entry points of the group `kaflow.sinks`."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from pydantic import BaseModel

from kaflow_engine.connectors.contract import SinkKind
from kaflow_engine.errors import ModelError, UnknownName

GROUP = "kaflow.sinks"
_PARTS = ("outlet", "capabilities", "unfit", "options")


class PluginKind(SinkKind, Protocol):
    """A kind of sink whose options it checks itself."""

    @property
    def options(self) -> type[BaseModel]:
        """What an author may say of an output, as a pydantic model."""
        ...


def installed() -> Mapping[str, EntryPoint]:
    """Return the kinds that packages of this environment offer, by `<namespace>.<name>`."""
    return {each.name: each for each in entry_points(group=GROUP) if "." in each.name}


@lru_cache(maxsize=64)
def plugin(name: str) -> PluginKind:
    """Return a kind of sink that a package offers, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is no kind of sink.
    """
    here = installed()
    if name not in here:
        error = UnknownName("plugin", name, here)
        error.hint = error.hint or f"install its package, which has an entry point of '{GROUP}'"
        raise error
    found = here[name]
    try:
        kind: PluginKind = found.load()()
    except Exception as error:
        raise ModelError(
            f"plugin '{name}' ({found.value}) cannot be loaded: {type(error).__name__}: {error}",
            hint="an entry point names a class that is made without arguments",
        ) from error
    missing = [part for part in _PARTS if not hasattr(kind, part)]
    if missing:
        raise ModelError(
            f"plugin '{name}' ({found.value}) is no kind of sink: it lacks '{missing[0]}'",
            hint="see PluginKind and SinkKind of kaflow_engine.api.sinks",
        )
    return kind
