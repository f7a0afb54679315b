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
        RetriableError,
        RunError,
        SinkError,
        SourceError,
        StateError,
        UnknownName,
        UserError,
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
    "RetriableError",
    "RunError",
    "SinkError",
    "SourceError",
    "StateError",
    "UnknownName",
    "UserError",
    "masked",
    "without_secrets",
]
