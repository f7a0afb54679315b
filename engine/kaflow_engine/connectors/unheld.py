"""Outlets of kinds of sinks that keep no note of what they were given, and so can hold nothing."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from kaflow_engine.connectors.contract import (
    Bounded,
    FinishedBatch,
    Output,
    Owner,
    Sink,
    TaskSink,
)
from kaflow_engine.connectors.holding import Holding

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for capabilities only, and it takes long to load


class UnheldRows:
    """What such sinks have in common on the driver; tasks may write with the same object."""

    __slots__ = ()

    def commit(self, batch: FinishedBatch) -> None:
        """Do nothing: tasks have done all."""

    def delivered(self, batch: int) -> bool:
        """Return False: nothing says what was delivered."""
        return False

    def finish(self) -> None:
        """Do nothing: every batch was visible when it was done."""


class _Both(TaskSink, Sink, Protocol):
    """Writes in tasks, and commits on the driver."""


class UnheldOutlet:
    """Opens outputs that belong to no one."""

    def __init__(self, make: Callable[[Output, Owner], _Both]) -> None:
        self._make = make

    def task(self, output: Output, owner: Owner) -> TaskSink:
        """Return what tasks write with."""
        return self._make(output, owner)

    def look(self, output: Output, columns: "pa.Schema", owner: Owner) -> Sequence[Holding]:
        """Return nothing: no batch is known."""
        return ()

    def hand_over(self, output: Output, columns: "pa.Schema", owner: Owner) -> None:
        """Do nothing: there is no owner."""

    def open(
        self, output: Output, columns: "pa.Schema", owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Return what the driver commits with."""
        return self._make(output, owner)
