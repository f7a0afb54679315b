"""What a plugin offers that is a kind of source: the version of this contract is 3.

A kind opens sources of one of two forms. One that *replays* gives the same rows for the same
range, whenever it is asked. One that does not is read once: what it gives is written to a journal,
with the position to go on from, and is read from there.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from kaflow_engine.measures import Measures
from kaflow_engine.plugins.metrics import PluginMetrics

Row = Mapping[str, Any] | bytes
"""A row by the names of its columns: values as Python has them, of whatever JSON has a form for,
and dates, times, `Decimal`, `UUID` and bytes. Bytes are a row that is a JSON object already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRow:
    """A row of a range, and when it came to be."""

    row: Row
    timestamp: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows that are written down together: after a crash all of them are there, or none."""

    rows: Sequence[Row] = ()
    """None: nothing has come, and whoever reads may look whether it all ends."""
    position: Any = None
    """What to go on behind, as data for JSON; it is kept with the rows."""


def _none() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a source is opened with."""

    name: str
    """What queries call it."""
    options: BaseModel
    """What the author says, as the model of the kind has it."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the configuration says of the plugin; secrets among it."""
    folder: Path
    """A folder of its own beside the journal, on the driver; it need not exist."""
    metrics: PluginMetrics = field(default_factory=lambda: PluginMetrics("", Measures()))
    """Records what it measures; of one that replays, which is read in many places, nothing is
    kept."""
    written: Callable[[], int] = _none
    """Returns how many of its rows were ever written down; of one that replays, 0."""
    committed: Callable[[], int] = _none
    """Returns how many of these are in batches that are committed, as far as that is known."""

    @property
    def logger(self) -> logging.Logger:
        """Where it can say what it does."""
        return logging.getLogger(f"kaflow.source.{self.name}")


class ReplayedSource(Protocol):
    """Rows in partitions, each at its offset for ever; it travels to tasks by pickle.

    Connections that break and time-outs of Python count as `SourceAway`, whatever else is raised as
    `SourceUnfit`.
    """

    def ends(self) -> Mapping[int, int]:
        """Return the offset of the next row to come, of each partition: 0, 1, …

        Raises:
            SourceAway: It may heal.
            SourceUnfit: Someone must act.
        """
        ...

    def starts(self, since: int | None) -> Mapping[int, int]:
        """Return the offset of the first row of each partition that there still is.

        Args:
            since: Of the first one as late as this time in epoch milliseconds, or its end; None: of
                all.
        """
        ...

    def rows(self, partition: int, start: int, end: int) -> Iterable[TimedRow]:
        """Return the rows with start <= offset < end, one for each offset, the same each time."""
        ...


class JournalledSource(Protocol):
    """Rows that come once."""

    def read(self, after: Any) -> Iterator[Piece]:
        """Yield what comes; when the next is asked for, the one before survives a power cut.

        A piece without rows is due about once a second, so that a run can end. The iterator is
        closed when it does. Where it returns, all has come of a source that is bounded; another one
        is read again after a pause.

        Args:
            after: The position of the last piece that was written down; None: there is none.

        Raises:
            SourceAway: It may heal, and is read again after a pause, up to `retry_deadline`. So are
                connections that break and time-outs of Python.
            SourceUnfit: Someone must act. Whatever else is raised ends the run, too.
        """
        ...


class SourcePluginKind(Protocol):
    """One kind of source; light to load, for planning asks it. It has no state."""

    @property
    def options(self) -> type[BaseModel]:
        """What an author may say of a source, as a pydantic model."""
        ...

    @property
    def replays(self) -> bool:
        """Whether it opens a `ReplayedSource`; else a `JournalledSource`."""
        ...

    def bounded(self, options: Any) -> bool:
        """Whether it has an end: a run ends when it has read up to there."""
        ...

    def columns(self, options: Any) -> Mapping[str, str] | None:
        """Return its columns with their DuckDB types; None: the author declares them."""
        ...

    def open(self, given: Given) -> Any:
        """Open a source; nothing is read yet."""
        ...
