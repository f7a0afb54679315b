"""Python functions that the SQL of pipelines may call."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.duck.functions.declared import aggregate, function
else:
    __getattr__ = lazily(__name__)

__all__ = ["aggregate", "function"]
