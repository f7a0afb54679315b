"""A copy that is open to be read, and does not change: values that were read stay in memory."""

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.reader import Entries, Scanned, StateReader

_MOST_BYTES = 16 << 20
"""Keys and values that stay, at most."""
_WORTH = 8
"""To look among so many that stay takes as long as to read one from the copy."""
_FEW = 0.5
"""Share of the keys asked for that must be among what stays, once no more of it fits in."""


class Known:
    """Asks a copy once for each key, where many are asked for together."""

    def __init__(self, copy: StateReader) -> None:
        self._copy = copy
        self._keys = self._values = pa.array([], pa.binary())
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
            self._forget()
        return cast(Any, pc).replace_with_mask(found, missing, values)  # the stub lacks it

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """See `StateReader`."""
        return self._copy.scan(prefixes)

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """See `StateReader`."""
        return self._copy.range(start, stop, most)

    def _keep(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        size = sum(each.nbytes for each in (self._keys, self._values, keys, values))
        self._full = size > _MOST_BYTES
        if not self._full:
            self._keys = pa.concat_arrays([self._keys, keys])
            self._values = pa.concat_arrays([self._values, values])

    def _forget(self) -> None:
        """Let all go: there are many more keys, and each batch brings others."""
        self._keys = self._values = pa.array([], pa.binary())
        self._useless = True
