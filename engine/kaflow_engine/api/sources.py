"""What a plugin needs that offers a kind of source, and the laws that it can test itself by."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.connectors.sources.plugin_contract import (
        Given,
        JournalledSource,
        Piece,
        ReplayedSource,
        Row,
        SourcePluginKind,
        TimedRow,
    )
    from kaflow_engine.errors import SourceAway, SourceError, SourceUnfit
    from kaflow_engine.plugins.metrics import PluginMetrics
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "Given",
    "JournalledSource",
    "Piece",
    "PluginMetrics",
    "ReplayedSource",
    "Row",
    "SourceAway",
    "SourceError",
    "SourcePluginKind",
    "SourceUnfit",
    "TimedRow",
]
