"""Plugins as kinds of sources."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.plugins import source_plugin
from kaflow_engine.connectors.sources.contract import NamedSource, SourcePlace
from kaflow_engine.connectors.sources.plugin_contract import Given
from kaflow_engine.errors import KaflowError, SourceUnfit
from kaflow_engine.flow.origins.plugins import JournalledPluginParams, PluginParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.plugin_sources.replayed import PluginSource

OWN = "plugin"
"""The folder of what a plugin keeps, in that of the journal."""


class PluginKind:
    """Opens sources of plugins: of themselves, or of their journals."""

    def open(
        self, params: PluginParams | JournalledPluginParams, place: SourcePlace
    ) -> NamedSource:
        """Open a source."""
        if isinstance(params, JournalledPluginParams):
            from kaflow_engine.connectors.journal.source import JournalSource

            return JournalSource(name=place.name, folder=place.journal, finite=params.bounded)
        return _replayed(params, place)

    def check(
        self, params: PluginParams | JournalledPluginParams, connection: Mapping[str, str]
    ) -> None:
        """Do nothing: planning has asked the plugin."""

    def sample(
        self, params: Any, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return None: planning has asked the plugin, or columns are declared."""
        return None


def opened(
    params: PluginParams | JournalledPluginParams,
    name: str,
    settings: Mapping[str, str],
    folder: Path,
) -> Any:
    """Return the source of a plugin.

    Args:
        params: Its settings.
        name: What queries call it.
        settings: What the configuration says of the plugin.
        folder: That of the journal.

    Raises:
        ModelError: The plugin is not there.
        SourceUnfit: It fails.
    """
    kind = source_plugin(params.type)
    try:
        options = kind.options.model_validate(dict(params.options))
        given = Given(name=name, options=options, settings=settings, folder=folder / OWN)
        return kind.open(given)
    except KaflowError:
        raise
    except Exception as error:
        raise SourceUnfit(
            f"plugin '{params.type}' cannot open source '{name}': {type(error).__name__}: {error}",
            hint="correct the plugin, or the 'options' that it gets",
        ) from error


def _replayed(params: PluginParams, place: SourcePlace) -> "PluginSource":
    from kaflow_engine.connectors.plugin_sources.replayed import PluginSource

    source = opened(params, place.name, place.connection, place.journal)
    return PluginSource(name=place.name, kind=params.type, source=source, finite=params.bounded)
