"""What a plugin needs that offers a format of values."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.errors import SinkUnfit, SourceUnfit
    from kaflow_engine.plugins.formats import (
        DecodedRows,
        EncodedValues,
        FormatPlugin,
        FormatPluginKind,
    )
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "DecodedRows",
    "EncodedValues",
    "FormatPlugin",
    "FormatPluginKind",
    "SinkUnfit",
    "SourceUnfit",
]
