"""What a plugin needs that is written as a class with hooks around each commit."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.connectors.hooked.sink import GivenSink, SinkHooks
    from kaflow_engine.connectors.hooked.source import SourceHooks
    from kaflow_engine.connectors.hooked.transform import TransformHooks
    from kaflow_engine.connectors.sources.plugin_contract import Given
    from kaflow_engine.errors import SinkAway, SinkUnfit, SourceAway, SourceUnfit
    from kaflow_engine.plugins.transforms import (
        GivenTransform,
        NewRows,
        TransformAway,
        TransformUnfit,
    )
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "Given",
    "GivenSink",
    "GivenTransform",
    "NewRows",
    "SinkAway",
    "SinkHooks",
    "SinkUnfit",
    "SourceAway",
    "SourceHooks",
    "SourceUnfit",
    "TransformAway",
    "TransformHooks",
    "TransformUnfit",
]
