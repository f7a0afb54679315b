"""The rows of one table in one task: as they were before the batch, with what it changed since."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.tables import Materialize
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.row_order import Places
from kaflow_engine.state.binary_columns import Items, fixed, heads, joined
from kaflow_engine.state.keys import entry_keys, split_entry

ROW = 0
"""Side byte of the rows of a table."""

_TS = np.dtype("<i8")


def row_values(ts: Places, packed: pa.Array) -> pa.BinaryArray:
    """Encode rows: the greatest event time of what made them, and their columns."""
    return joined(fixed(ts.astype(_TS)), packed.cast(pa.binary()))


def read_rows(values: pa.BinaryArray) -> tuple[Places, pa.StringArray]:
    """Decode what `row_values` wrote: event times and packed rows; none may be null."""
    texts = pc.binary_slice(values, _TS.itemsize, 1 << 31).cast(pa.string())
    return heads(values, _TS).astype(np.int64), texts


class KeptRows:
    """Reads see what the batch wrote before; `write` hands all of it to the task."""

    def __init__(self, table: Materialize, state: StepState) -> None:
        self._retain, self._state = table.retain, state
        self._now: dict[bytes, bytes | None] = {}
        self._dues: dict[bytes, int] = {}

    def of(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the rows under keys, each of which occurs once; null where there is none."""
        found = self._state.look_up(ROW, keys)
        if not self._now:
            return found
        both: zip[tuple[bytes, bytes | None]] = zip(
            keys.to_pylist(), found.to_pylist(), strict=True
        )
        return pa.array([self._now.get(key, value) for key, value in both], pa.binary())

    def put(self, keys: pa.BinaryArray, values: pa.BinaryArray, ts: Places, new: Items) -> None:
        """Keep rows.

        Args:
            keys: Each once.
            values: What is kept; null deletes.
            ts: Event times of the rows.
            new: Where there was no row (bool); the time at which it is over is noted once, and
                looked at again then.
        """
        names: list[bytes] = keys.to_pylist()
        self._now.update(zip(names, values.to_pylist(), strict=True))
        if self._retain is not None:
            for place in np.flatnonzero(new).tolist():
                self._dues[names[place]] = int(ts[place]) + self._retain

    def over(self, watermark: int) -> Iterator[list[tuple[bytes, bytes, int]]]:
        """Delete the rows that nothing changed for long; yield key, value and when they were due.

        Only those that were there before the batch are looked at.
        """
        for due in self._state.due(watermark) if self._retain is not None else ():
            found: list[tuple[bytes, bytes, int]] = []
            later: dict[bytes, int] = {}
            entries = list(dict.fromkeys(entry for _, entry in due))
            keys = [split_entry(entry)[0] for entry in entries]
            values = self.of(pa.array(keys, pa.binary())).to_pylist()
            for entry, key, value in zip(entries, keys, values, strict=True):
                at = self._over_at(value)
                if at is None:
                    continue  # deleted before
                if at < watermark:
                    self._now[key] = None
                    found.append((key, value, at))
                else:
                    later[entry] = at
            self._state.remove([entry for entry in entries if entry not in later])
            for entry, at in later.items():
                self._state.postpone(entry, at)
            yield found

    def write(self) -> int | None:
        """Hand the changes to the task; returns the earliest time at which something is over."""
        self._change([key for key in self._now if key not in self._dues], None)
        noted = [key for key in self._dues if key in self._now]
        self._change(noted, np.array([self._dues[key] for key in noted], np.int64))
        return self._state.write()

    def _change(self, names: Sequence[bytes], dues: Places | None) -> None:
        if names:
            values = pa.array([self._now[name] for name in names], pa.binary())
            self._state.change(entry_keys(pa.array(names, pa.binary()), ROW), values, dues)

    def _over_at(self, value: bytes | None) -> int | None:
        if value is None or self._retain is None:
            return None
        return int.from_bytes(value[: _TS.itemsize], "little", signed=True) + self._retain
