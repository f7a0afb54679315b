"""What a plugin needs that rewrites the text of pipeline files."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.errors import Location, ModelError
    from kaflow_engine.plugins.preprocessors import GivenText, PreprocessorPlugin
else:
    __getattr__ = lazily(__name__)

__all__ = ["GivenText", "Location", "ModelError", "PreprocessorPlugin"]
