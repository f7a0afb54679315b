"""Errors that the engine raises on purpose, and masks for what must not be shown."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.errors import (
        DrainIncomplete,
        KaflowError,
        Location,
        ModelError,
        Problems,
        RunError,
        SinkError,
        SourceError,
        StateError,
        UnknownName,
    )
    from kaflow_engine.masking import masked, without_secrets
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "DrainIncomplete",
    "KaflowError",
    "Location",
    "ModelError",
    "Problems",
    "RunError",
    "SinkError",
    "SourceError",
    "StateError",
    "UnknownName",
    "masked",
    "without_secrets",
]
