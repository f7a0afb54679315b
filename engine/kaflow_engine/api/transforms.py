"""What a plugin needs that offers a kind of transform."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.plugins.metrics import PluginMetrics
    from kaflow_engine.plugins.transforms import (
        GivenTransform,
        NewRows,
        TransformAway,
        TransformPlugin,
        TransformPluginKind,
        TransformUnfit,
    )
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "GivenTransform",
    "NewRows",
    "PluginMetrics",
    "TransformAway",
    "TransformPlugin",
    "TransformPluginKind",
    "TransformUnfit",
]
