"""A source that is asked for rows, and hears of what became of them."""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kaflow_engine.connectors.hooked.calls import CONTRACT, AnyOptions, Calls
from kaflow_engine.connectors.sources.plugin_contract import Given, Piece, Row

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for columns only, and it takes long to load

_SLICE_S = 0.5
"""How often a source that has nothing looks whether a run ends, and what was committed."""


class SourceHooks:
    """A kind of source and, of each of its sources, the object that gives its rows.

    Exactly once: rows, the number of their epoch and `position` are written down together, before
    any batch has them. Epochs are counted by the source: 1 are the first rows that it gave. After a
    crash another object begins with the `position` of the last rows that were written down.
    """

    contract = CONTRACT
    options: type[BaseModel] = AnyOptions
    replays = False
    ends = False
    """Whether it has an end: it is reached when `is_running` returns False."""
    pause = 1.0
    """Seconds until it is asked again after it had nothing."""
    given: Given
    position: Any = None
    """What `process_checkpoint_marker` returned last; None: nothing yet."""

    # what an author writes, plain or async

    def initialize(self) -> Any:
        """Begin; `given` and `position` are there."""

    def generate_batch(self) -> "pa.RecordBatch | pa.Table | list[Row] | Any":
        """Return what has come: Arrow, or mappings by column; nothing, if nothing has.

        Raises:
            SourceAway: It may heal; so may connections that break and time-outs of Python.
            SourceUnfit: Someone must act.
        """
        raise NotImplementedError

    def process_checkpoint_marker(self, epoch: int) -> Any:
        """Return where to go on behind the rows that were given last, as data for JSON; they are
        written down next, with it. None: `position` stays."""

    def process_checkpoint_finalizer(self, epoch: int) -> Any:
        """Hear that all rows up to those of an epoch are in batches that are committed: now tell
        whoever sent them. At least once, in ascending order, and not of each epoch."""

    def is_running(self) -> Any:
        """Tell whether more may come."""
        return True

    def terminate(self) -> Any:
        """End; the object is not used again."""

    # what the engine asks

    def bounded(self, options: Any) -> bool:
        """Tell whether it has an end."""
        return self.ends

    def columns(self, options: Any) -> Mapping[str, str] | None:
        """Return its columns with their DuckDB types; None: the author declares them."""
        return None

    def open(self, given: Given) -> "SourceHooks":
        """Return an object for one source, which has not begun."""
        made = type(self)()
        made.given = given
        return made

    def read(self, after: Any) -> Iterator[Piece]:
        """Yield what it gives; see `JournalledSource`."""
        epoch, self.position = _begun(after)
        given, calls = self.given, Calls()
        open_epochs = deque([(given.written(), epoch)] if epoch else [])
        calls(self.initialize)
        try:
            while calls(self.is_running):
                rows = _rows(calls(self.generate_batch))
                if rows:
                    epoch += 1
                    said = calls(self.process_checkpoint_marker, epoch)
                    self.position = self.position if said is None else said
                    yield Piece(rows=rows, position={"epoch": epoch, "position": self.position})
                    open_epochs.append((given.written(), epoch))
                    self._finalize(open_epochs, calls)
                else:
                    yield from self._idle(self.pause, open_epochs, calls)
            while open_epochs:  # of a source that ends; its run goes on until its rows are read
                yield from self._idle(_SLICE_S, open_epochs, calls)
        finally:
            calls(self.terminate)
            calls.close()

    def _idle(
        self, seconds: float, open_epochs: deque[tuple[int, int]], calls: Calls
    ) -> Iterator[Piece]:
        while True:
            self._finalize(open_epochs, calls)
            yield Piece()
            if seconds <= 0:
                return
            threading.Event().wait(min(seconds, _SLICE_S))
            seconds -= _SLICE_S

    def _finalize(self, open_epochs: deque[tuple[int, int]], calls: Calls) -> None:
        """Say which epochs are in batches that are committed: the last of them is enough."""
        committed, last = self.given.committed(), None
        while open_epochs and open_epochs[0][0] <= committed:
            last = open_epochs.popleft()[1]
        if last is not None:
            calls(self.process_checkpoint_finalizer, last)


def _rows(given: Any) -> list[Row]:
    """Return what came as rows: an Arrow batch or table, or rows already."""
    return given.to_pylist() if hasattr(given, "to_pylist") else list(given or ())


def _begun(after: Any) -> tuple[int, Any]:
    """Return the epoch and the position to go on behind; a plugin that had no hooks before has
    left a position alone."""
    match after:
        case {"epoch": int(epoch), "position": position}:
            return epoch, position
        case _:
            return 0, after
