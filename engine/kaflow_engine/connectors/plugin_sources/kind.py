"""Plugins as kinds of sources."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.plugins import source_plugin
from kaflow_engine.connectors.sources.contract import NamedSource, SourcePlace
from kaflow_engine.connectors.sources.plugin_contract import Given
from kaflow_engine.flow.origins.plugins import JournalledPluginParams, PluginParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.measures import Measures
from kaflow_engine.model.columns import Column
from kaflow_engine.plugins.metrics import PluginMetrics
from kaflow_engine.plugins.raised import OF_SOURCES, plugin_errors

if TYPE_CHECKING:
    from kaflow_engine.connectors.journal.journal import Journal
    from kaflow_engine.connectors.plugin_sources.replayed import PluginSource

PLUGIN_FOLDER = "plugin"
"""The folder of what a plugin keeps, in that of the journal."""


class PluginSourceKind:
    """Opens sources of plugins: of themselves, or of their journals."""

    def open(
        self, params: PluginParams | JournalledPluginParams, place: SourcePlace
    ) -> NamedSource:
        """Open a source."""
        if isinstance(params, JournalledPluginParams):
            from kaflow_engine.connectors.journal.source import JournalSource

            ends_as = params.type if params.bounded else None
            return JournalSource(name=place.name, folder=place.journal, ends_as=ends_as)
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
    measures: Measures | None = None,
    journal: "Journal | None" = None,
) -> Any:
    """Return the source of a plugin.

    Args:
        params: Its settings.
        name: What queries call it.
        settings: What the configuration says of the plugin.
        folder: That of the journal.
        measures: Takes what it measures; None: nothing does.
        journal: What its rows are written to; None: it replays.

    Raises:
        ModelError: The plugin is not there.
        SourceAway: It may heal.
        SourceUnfit: Someone must act.
    """
    kind = source_plugin(params.type)
    with plugin_errors(OF_SOURCES, f"plugin '{params.type}'", f"cannot open source '{name}'"):
        options = kind.options.model_validate(dict(params.options))
        own = folder / PLUGIN_FOLDER
        metrics = PluginMetrics(params.type, measures or Measures())
        given = Given(name=name, options=options, settings=settings, folder=own, metrics=metrics)
        if journal is not None:
            given = replace(
                given,
                written=lambda: journal.end,
                committed=lambda: journal.read_up_to or 0,
            )
        return kind.open(given)


def _replayed(params: PluginParams, place: SourcePlace) -> "PluginSource":
    from kaflow_engine.connectors.plugin_sources.replayed import PluginSource

    source = opened(params, place.name, place.connection, place.journal)
    return PluginSource(name=place.name, kind=params.type, source=source, finite=params.bounded)
