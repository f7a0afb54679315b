"""Reads data sources of PySpark, each range once, into journals."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import Line, in_threads
from kaflow_engine.connectors.plugin_sources.kind import PLUGIN_FOLDER
from kaflow_engine.connectors.plugin_sources.receiving import take
from kaflow_engine.connectors.pyspark.first_offset import FirstOffset
from kaflow_engine.connectors.pyspark.kind import kind_of
from kaflow_engine.connectors.pyspark.reader import Offset, Range, Reading, Stream
from kaflow_engine.connectors.pyspark.spool import MOST_ROWS, Spool
from kaflow_engine.connectors.sources.plugin_contract import Piece
from kaflow_engine.errors import KaflowError, SourceAway

_LOOK_S = 0.2
"""How often to look whether it all ends, while nothing comes."""


class PySparkRows:
    """Takes rows of data sources; each has a thread."""

    def receiving(self, inlets: Sequence[Inlet]) -> AbstractContextManager[None]:
        """Take rows to the end of the block."""
        return in_threads(inlets, take_rows)


def take_rows(line: Line) -> None:
    """Take what a data source gives, until it ends.

    Raises:
        SourceAway: It failed: it does not say whether that may heal.
        SourceUnfit: It is not as a pipeline needs it.
        StateError: Rows could not be written down.
    """
    params = line.inlet.params
    take(line, f"data source '{params.format}'", kind_of(params), _opened)


def _opened(inlet: Inlet) -> "PySparkSource":
    folder = inlet.journal.folder / PLUGIN_FOLDER
    return PySparkSource(
        reading=Reading(inlet.params, inlet.settings),
        spool=Spool(folder),
        first=FirstOffset(folder, kind_of(inlet.params)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PySparkSource:
    """Pieces of what a data source gives, each with the offset behind it."""

    reading: Reading
    spool: Spool
    first: FirstOffset

    def read(self, after: Any) -> Iterator[Piece]:
        """Yield pieces; a range that was begun is given to its end, as it was read.

        Raises:
            SourceAway: The data source failed.
            SourceUnfit: It is not as a pipeline needs it.
        """
        if after is not None and "done" in after:
            yield from self._rest(after["end"], after["done"])
            after = {"offset": after["end"]}
        self.spool.drop()
        try:
            if self.reading.params.bounded:
                if after is None:
                    yield from self._pieces(Range(self.reading.batch(), None))
                return
            yield from self._live(self.reading.stream(), after)
        except KaflowError:
            raise
        except Exception as error:
            raise SourceAway(f"{self.reading.called}: {type(error).__name__}: {error}") from error

    def _live(self, stream: Stream, after: Any) -> Iterator[Piece]:
        try:
            if after is None:
                at = self.first.kept(stream.initial)
            else:
                self.first.drop()
                at = after["offset"]
            while True:
                found = stream.behind(at)
                if found is None:
                    yield from self._waits()
                    continue
                has_rows = False
                for piece in self._pieces(found):
                    has_rows = True
                    yield piece
                at = found.end
                if has_rows:  # else a restart goes on before it
                    self.first.drop()
                    stream.commit(at)
                yield Piece()
        finally:
            stream.stop()

    def _pieces(self, found: Range) -> Iterator[Piece]:
        some: list[pa.Array] = []
        for values in found.values:
            some.append(values)
            if sum(len(each) for each in some) > MOST_ROWS:
                break
        else:
            if rows := [row for each in some for row in _rows(each)]:
                yield Piece(rows=rows, position={"offset": found.end})
            return
        self.spool.keep(chain(some, found.values))
        yield from self._rest(found.end, 0)
        self.spool.drop()

    def _rest(self, end: Offset, done: int) -> Iterator[Piece]:
        """Yield what is left of the range in the spool; the last piece says that it was all."""
        for rows, following in pairwise(chain(self.spool.behind(done), [None])):
            assert rows is not None
            done += len(rows)
            is_last = following is None
            yield Piece(
                rows=rows, position={"offset": end} if is_last else {"end": end, "done": done}
            )

    def _waits(self) -> Iterator[Piece]:
        until = time.monotonic() + self.reading.params.interval / 1000
        while (left := until - time.monotonic()) > 0:
            yield Piece()
            time.sleep(min(left, _LOOK_S))


def _rows(values: pa.Array) -> list[bytes]:
    return values.cast(pa.binary()).to_pylist()
