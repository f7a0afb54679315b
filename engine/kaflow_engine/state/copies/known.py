"""A copy that is open to be read, and does not change: values that were read stay in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.reader import Entries, Scanned, StateReader

_WORTH = 8
"""To look among so many that stay takes as long as to read one from the copy."""
_FEW = 0.5
"""Share of the keys asked for that must be among what stays, once no more of it fits in."""


@dataclass(slots=True)
class Room:
    """The bytes that a process has left for what stays of all its copies."""

    left: int = 32 << 20


class Known:
    """Asks a copy once for each key, where many are asked for together."""

    def __init__(self, copy: StateReader, room: Room) -> None:
        self._copy, self._room = copy, room
        self._keys = self._values = pa.array([], pa.binary())
        self._held = 0
        self._full = self._useless = False

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `StateReader`."""
        return self._copy.get(keys)

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """See `StateReader`."""
        if self._useless or len(keys) * _WORTH < len(self._keys):
            return self._copy.read(keys)
        at = pc.index_in(keys, value_set=self._keys)
        found = self._values.take(at)
        if not at.null_count:
            return found
        missing = at.is_null()
        asked = keys.filter(missing)
        values = self._copy.read(asked)
        if not self._full:
            self._keep(asked, values)
        elif at.null_count > _FEW * len(keys):
            self._useless = True
            self.forget()
        return cast(Any, pc).replace_with_mask(found, missing, values)  # the stub lacks it

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """See `StateReader`."""
        return self._copy.scan(prefixes)

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """See `StateReader`."""
        return self._copy.range(start, stop, most)

    def forget(self) -> None:
        """Let all go that was read."""
        self._room.left += self._held
        self._held = 0
        self._keys = self._values = pa.array([], pa.binary())

    def _keep(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        both = pa.concat_arrays([self._keys, keys]), pa.concat_arrays([self._values, values])
        more = sum(each.nbytes for each in both) - self._held
        self._full = more > self._room.left
        if not self._full:
            self._room.left -= more
            self._held += more
            self._keys, self._values = both
