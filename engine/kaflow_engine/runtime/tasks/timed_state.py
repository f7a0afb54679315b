"""A state partition whose reads are timed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.state.reader import Entries, Scanned, StateReader


@dataclass(frozen=True, slots=True)
class TimedReader:
    """Passes reads on, each in a block of `timed()`."""

    reader: StateReader
    timed: Callable[[], AbstractContextManager[None]]

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none; any order, repeats allowed."""
        with self.timed():
            return self.reader.get(keys)

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of each key, null where there is none; each key once, in any order."""
        with self.timed():
            return self.reader.read(keys)

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """Return all entries whose key starts with one of the prefixes."""
        with self.timed():
            return self.reader.scan(prefixes)

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """Return the first `most` entries with `start` <= key < `stop`; None: no bound."""
        with self.timed():
            return self.reader.range(start, stop, most)
