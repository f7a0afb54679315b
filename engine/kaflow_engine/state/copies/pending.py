"""A state partition with changes on top that its copy does not have yet."""

from bisect import bisect_left
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.log.changes import change_lists
from kaflow_engine.state.reader import Entries, Scanned, StateReader, successor


class PendingState:
    """Reads changes first, and what they leave from the state below."""

    def __init__(self, below: StateReader) -> None:
        self._below = below
        self._changed: dict[bytes, bytes | None] = {}
        self._keys: list[bytes] = []
        """Those that changed; ascending up to `_ordered`."""
        self._ordered = 0
        self.grown = 0
        """How many entries more there are, if those put are new and those deleted were there."""

    def apply(self, changes: pa.Table) -> None:
        """Put and delete; later rows win on equal keys."""
        changed = self._changed
        for key, value in zip(*change_lists(changes), strict=True):
            if key not in changed:
                self._keys.append(key)
                self.grown += 1 if value is not None else -1
            else:
                self.grown += (value is not None) - (changed[key] is not None)
            changed[key] = value

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none."""
        changed = self._changed
        if not changed:
            return self._below.get(keys)
        below = [key for key in keys if key not in changed]
        found = dict(zip(below, self._below.get(below), strict=True)) if below else {}
        return [changed[key] if key in changed else found[key] for key in keys]

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of each key, null where there is none."""
        found = self._below.read(keys)
        if not self._changed:
            return found
        names, values = (
            pa.array(list(each), pa.binary()) for each in (self._changed, self._changed.values())
        )
        at = pc.index_in(keys, value_set=names)
        return pc.if_else(at.is_valid(), values.take(at), found)

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """Return all entries whose key starts with one of the prefixes."""
        found = self._below.scan(prefixes)
        touched = [self._between(prefix, successor(prefix)) for prefix in prefixes]
        if not any(touched):
            return found
        entries: list[dict[bytes, bytes | None]] = [{} for _ in prefixes]
        for index, key, value in zip(found.index, found.keys, found.values, strict=True):
            entries[index][key] = value
        scanned = Scanned([], [], [])
        for index, keys in enumerate(touched):
            mine = _merged(entries[index], {key: self._changed[key] for key in keys})
            scanned.index.extend([index] * len(mine.keys))
            scanned.keys.extend(mine.keys)
            scanned.values.extend(mine.values)
        return scanned

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """Return the first `most` entries with `start` <= key < `stop`; None: no bound."""
        changed = {key: self._changed[key] for key in self._between(start, stop)}
        gone = sum(value is None for value in changed.values())
        found = self._below.range(start, stop, None if most is None else most + gone)
        if not changed:
            return found
        mine = _merged(dict(zip(found.keys, found.values, strict=True)), changed)
        return Entries(mine.keys[:most], mine.values[:most])

    def _between(self, start: bytes, stop: bytes | None) -> list[bytes]:
        keys = self._keys
        if self._ordered < len(keys):
            keys.sort()
            self._ordered = len(keys)
        first = bisect_left(keys, start)
        end = len(keys) if stop is None else max(bisect_left(keys, stop), first)
        return keys[first:end]


def _merged(below: dict[bytes, bytes | None], changed: dict[bytes, bytes | None]) -> Entries:
    both = sorted((k, v) for k, v in {**below, **changed}.items() if v is not None)
    return Entries([key for key, _ in both], [value for _, value in both])
