"""What outside systems answered in a batch, kept so that a batch that runs again uses it."""

from collections.abc import Mapping
from typing import Any, Protocol


class Answers(Protocol):
    """The answers of one batch, by names that its tasks choose; each name is of one task."""

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """Return an answer that an earlier try of the batch has kept; None: there is none.

        Raises:
            Damaged: It was altered.
        """
        ...

    def keep(self, name: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer, durably: what follows from it may happen afterwards."""
        ...


class _NoAnswers:
    """Keeps nothing: each try asks again."""

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """Return None."""
        return None

    def keep(self, name: str, answer: Mapping[str, Any]) -> None:
        """Do nothing."""


NO_ANSWERS: Answers = _NoAnswers()
