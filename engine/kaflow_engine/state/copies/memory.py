"""In-memory state partitions for small states, tests and previews."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import pyarrow as pa

from kaflow_engine.state.log.changes import change_lists
from kaflow_engine.state.reader import Entries, Scanned, successor


class MemoryState:
    """A dictionary whose keys are sorted when a scan first needs them."""

    def __init__(self, entries: Mapping[bytes, bytes] | None = None) -> None:
        self._entries = dict(entries or {})
        self._sorted: list[bytes] | None = None
        self._added: list[bytes] = []

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> dict[bytes, bytes]:
        """Return a copy of all entries."""
        return dict(self._entries)

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none."""
        return list(map(self._entries.get, keys))

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of each key, null where there is none."""
        return pa.array(self.get(keys.to_pylist()), pa.binary())

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """Return all entries whose key starts with one of the prefixes."""
        index: list[int] = []
        keys: list[bytes] = []
        if self._entries:
            for position, prefix in enumerate(prefixes):
                found = self._between(prefix, successor(prefix))
                keys += found
                index += [position] * len(found)
        return Scanned(index, keys, [self._entries[key] for key in keys])

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """Return the first `most` entries with `start` <= key < `stop`; None: no bound."""
        keys = self._between(start, stop, most)
        return Entries(keys, [self._entries[key] for key in keys])

    def apply(self, changes: pa.Table) -> None:
        """Put and delete; later rows win on equal keys."""
        entries = self._entries
        for key, value in zip(*change_lists(changes), strict=True):
            if value is None:
                if entries.pop(key, None) is not None:
                    self._sorted = None
            else:
                if key not in entries:
                    self._added.append(key)
                entries[key] = value

    def _between(self, start: bytes, stop: bytes | None, most: int | None = None) -> list[bytes]:
        keys = self._ordered()
        first = bisect_left(keys, start)
        end = len(keys) if stop is None else bisect_left(keys, stop)
        return keys[first : end if most is None else min(end, first + most)]

    def _ordered(self) -> list[bytes]:
        if self._sorted is None:
            self._sorted = sorted(self._entries)
        elif self._added:
            self._sorted += self._added
            self._sorted.sort()
        self._added = []
        return self._sorted
