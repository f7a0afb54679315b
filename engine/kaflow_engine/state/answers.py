"""What outside systems answered in a batch, kept so that a batch that runs again uses it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa  # planning loads this file, and it takes long to load


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

    def kept_rows(self, name: str) -> "pa.Table":
        """Return the answers about rows that tries of the batch have kept: schema KEPT.

        Such a name may be of several tasks, each of which has rows of its own; where a key stands
        twice, the first row counts.

        Raises:
            Damaged: They were altered.
        """
        ...

    def keep_rows(self, name: str, rows: "pa.Table") -> None:
        """Keep answers about rows, durably, beside those that are kept: schema KEPT."""
        ...


class _NoAnswers:
    """Keeps nothing: each try asks again."""

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """Return None."""
        return None

    def keep(self, name: str, answer: Mapping[str, Any]) -> None:
        """Do nothing."""

    def kept_rows(self, name: str) -> "pa.Table":
        """Return none."""
        from kaflow_engine.state.kept import KEPT  # it loads Arrow

        return KEPT.empty_table()

    def keep_rows(self, name: str, rows: "pa.Table") -> None:
        """Do nothing."""


NO_ANSWERS: Answers = _NoAnswers()
