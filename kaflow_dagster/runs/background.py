"""Work in a thread of its own, so that Spark does not take the signals that end a Dagster run."""

import logging
import traceback
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self, TypeVar

import dagster as dg

from kaflow_engine.api.errors import DrainIncomplete, masked, without_secrets

LOGGER = logging.getLogger("kaflow.dagster")

GRACE_S = 15.0

T = TypeVar("T")


class Background:
    """Runs a function until it ends; leaving the block asks it to stop, and waits for that."""

    def __init__(self, work: Callable[[Event], None], deadline: int) -> None:
        """Prepare the work.

        Args:
            work: Gets the event that asks it to stop.
            deadline: Milliseconds that it may take to do so.
        """
        self.stop = Event()
        """Set it to ask the work to stop."""
        self.error: BaseException | None = None
        """What the work raised."""
        self._patience = deadline / 1000 + GRACE_S
        self._thread = Thread(target=self._run, args=(work,), name="kaflow-work", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop.set()
        self._thread.join(self._patience)
        if self._thread.is_alive() and self.error is None:
            self.error = DrainIncomplete(
                f"the work did not stop within {self._patience:g} s",
                hint="the open batch runs again at the next start; "
                "raise 'drain_deadline' to wait longer",
            )

    def runs_after(self, seconds: float) -> bool:
        """Wait for the end of the work, and tell whether it is still to come."""
        self._thread.join(seconds)
        return self._thread.is_alive()

    def _run(self, work: Callable[[Event], None]) -> None:
        try:
            work(self.stop)
        except BaseException as error:  # whoever waits raises it
            self.error = error


class Errand:
    """Calls functions beside the caller, who waits a moment: one that hangs holds up no one."""

    def __init__(self) -> None:
        self._thread: Thread | None = None

    def result(self, work: Callable[[], T], seconds: float) -> T | None:
        """Return what a function returns.

        None where it raises, or takes longer, or where an earlier one has not ended: no two run at
        a time.
        """
        if self._thread is not None and self._thread.is_alive():
            return None
        found: list[T] = []

        def run() -> None:
            try:
                found.append(work())
            except Exception as error:
                LOGGER.debug("%s", masked("", str(error)))

        self._thread = Thread(target=run, name="kaflow-errand", daemon=True)
        self._thread.start()
        self._thread.join(seconds)
        return found[0] if found else None


def failure(error: BaseException) -> dg.Failure:
    """Return what ends a run: the error in its own words, and no retry by Dagster.

    Raise it `from None`: Dagster would keep the causes in their own words, secrets and all.
    """
    trace = "".join(traceback.format_exception(error))
    metadata = {
        "kind": dg.MetadataValue.text(type(error).__name__),
        "traceback": dg.MetadataValue.md(f"```\n{without_secrets(trace)}\n```"),
    }
    about = masked("", str(error))
    return dg.Failure(description=about, metadata=metadata, allow_retries=False)
