"""Kinds of sinks and sources that installed packages offer."""

from typing import Protocol

from pydantic import BaseModel

from kaflow_engine.connectors.contract import SinkKind
from kaflow_engine.connectors.sources.plugin_contract import SourcePluginKind
from kaflow_engine.plugins.installed import SINKS, SOURCES, loaded


class PluginKind(SinkKind, Protocol):
    """A kind of sink whose options it checks itself."""

    @property
    def options(self) -> type[BaseModel]:
        """What an author may say of an output, as a pydantic model."""
        ...


def plugin(name: str) -> PluginKind:
    """Return a kind of sink that a package offers, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is no kind of sink.
    """
    return loaded(SINKS, name)


def source_plugin(name: str) -> SourcePluginKind:
    """Return a kind of source that a package offers, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is no kind of source.
    """
    return loaded(SOURCES, name)
