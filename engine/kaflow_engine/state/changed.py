"""A state partition with changes of the batch that runs."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from kaflow_engine.state.reader import Entries, Scanned, StateReader, successor


class Changed:
    """A state partition as it is behind some changes: few, for they stay in memory."""

    def __init__(self, before: StateReader, changes: Mapping[bytes, bytes | None]) -> None:
        self._before, self._changes, self._keys = before, changes, sorted(changes)

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none; any order, repeats allowed."""
        found = self._before.get(keys)
        return [self._changes.get(key, value) for key, value in zip(keys, found, strict=True)]

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """Return all entries whose key starts with one of the prefixes."""
        index: list[int] = []
        keys: list[bytes] = []
        values: list[bytes] = []
        for number, prefix in enumerate(prefixes):
            found = self.range(prefix, successor(prefix))
            index += [number] * len(found.keys)
            keys += found.keys
            values += found.values
        return Scanned(index, keys, values)

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """Return the first `most` entries with `start` <= key < `stop`; None: no bound."""
        end = len(self._keys) if stop is None else bisect_left(self._keys, stop)
        own = self._keys[bisect_left(self._keys, start) : end]
        # as many may be gone
        before = self._before.range(start, stop, None if most is None else most + len(own))
        found = dict(zip(before.keys, before.values, strict=True))
        for key in own:
            value = self._changes[key]
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        chosen = sorted(found)[:most]
        return Entries(chosen, [found[key] for key in chosen])
