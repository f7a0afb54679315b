"""A state partition with changes of the batch that runs."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import pyarrow as pa

from kaflow_engine.state.reader import Entries, Scanned, StateReader, successor


class Changed:
    """A state partition as it is behind some changes: few, for they stay in memory."""

    def __init__(self, before: StateReader, changes: Mapping[bytes, bytes | None]) -> None:
        self._before, self._changes, self._keys = before, changes, sorted(changes)

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none; any order, repeats allowed."""
        found = self._before.get(keys)
        return [self._changes.get(key, value) for key, value in zip(keys, found, strict=True)]

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of each key, null where there is none."""
        return pa.array(self.get(keys.to_pylist()), pa.binary())

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """Return all entries whose key starts with one of the prefixes."""
        found = self._before.scan(prefixes)
        own = [self._between(prefix, successor(prefix)) for prefix in prefixes]
        if not any(own):
            return found
        some: list[dict[bytes, bytes]] = [{} for _ in prefixes]
        for number, key, value in zip(found.index, found.keys, found.values, strict=True):
            some[number][key] = value
        both = [self._changed(each, keys) for each, keys in zip(some, own, strict=True)]
        return Scanned(
            [number for number, each in enumerate(both) for _ in each.keys],
            [key for each in both for key in each.keys],
            [value for each in both for value in each.values],
        )

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """Return the first `most` entries with `start` <= key < `stop`; None: no bound."""
        own = self._between(start, stop)
        # as many may be gone
        before = self._before.range(start, stop, None if most is None else most + len(own))
        return self._changed(dict(zip(before.keys, before.values, strict=True)), own, most)

    def _between(self, start: bytes, stop: bytes | None) -> list[bytes]:
        """Return the keys of a range that have changed."""
        end = len(self._keys) if stop is None else bisect_left(self._keys, stop)
        return self._keys[bisect_left(self._keys, start) : end]

    def _changed(
        self, found: dict[bytes, bytes], own: Sequence[bytes], most: int | None = None
    ) -> Entries:
        """Return entries, of which some keys have changed, in order."""
        for key in own:
            value = self._changes[key]
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        chosen = sorted(found)[:most]
        return Entries(chosen, [found[key] for key in chosen])
