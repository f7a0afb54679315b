"""A range of a data source that is too long to be written down at once.

It is read once, into a file of its own; from there it goes into the journal, piece by piece. So
what follows a crash are the rows of this one reading.
"""

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from kaflow_engine.errors import SourceUnfit

MOST_ROWS = 10_000
"""Rows that are written down together."""

_SCHEMA = pa.schema([("value", pa.binary())])


class Spool:
    """The file of one range; there is one at a time.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "range.arrows"

    def keep(self, values: Iterable[pa.Array]) -> None:
        """Write a range; it is there when this returns, or not at all.

        Raises:
            OSError: It cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with _whole(self._path) as file, pa.ipc.new_stream(file, _SCHEMA) as stream:
            for some in values:
                rows = pa.table([some.cast(pa.binary())], schema=_SCHEMA)
                stream.write_table(rows, max_chunksize=MOST_ROWS)

    def behind(self, count: int) -> Iterator[list[bytes]]:
        """Yield the values of the range behind so many, some at a time.

        Raises:
            SourceUnfit: It is gone.
        """
        try:
            opened = self._path.open("rb")
        except FileNotFoundError as error:
            raise SourceUnfit(
                f"'{self._path}' is gone, which has rows that no one gives again",
                hint="restore it from a backup; nothing but kaflow may delete files there",
            ) from error
        with opened as file:
            for batch in pa.ipc.open_stream(file):
                skipped = min(count, batch.num_rows)
                count -= skipped
                if found := batch.column(0).slice(skipped).to_pylist():
                    yield found

    def drop(self) -> None:
        """Remove it."""
        with suppress(FileNotFoundError):
            self._path.unlink()


@contextmanager
def _whole(path: Path) -> Generator[BinaryIO]:
    """Give a file to write, which is there, and survives a power cut, when the block ends; if it
    fails, what was there before stays."""
    begun = path.with_suffix(".begun")
    with begun.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    begun.rename(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
