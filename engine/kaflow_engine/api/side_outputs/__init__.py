"""What a plugin needs that sees rows before they leave."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.plugins.metrics import PluginMetrics
    from kaflow_engine.plugins.side_outputs import (
        GivenSideOutput,
        SeenRows,
        SideOutputKind,
        SideOutputPlugin,
    )
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "GivenSideOutput",
    "PluginMetrics",
    "SeenRows",
    "SideOutputKind",
    "SideOutputPlugin",
]
