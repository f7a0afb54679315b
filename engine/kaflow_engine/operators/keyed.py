"""Keyed state as a step sees it: entries by join key, an index by due time, and what changes."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.shards import SHARDS, first_parts, part_of_shard, shards_of
from kaflow_engine.operators.task import Task
from kaflow_engine.state.changes import CHANGES, to_changes
from kaflow_engine.state.keys import (
    due_key,
    due_range,
    entry_key,
    entry_keys,
    split_due,
    split_entry,
)

DRIVER, WAITING, MATCH, KEYLESS, EMITTED = 100, 101, 102, 103, 104
"""Side bytes of entries that are not a side's own: retained driving records, waiting rows, matches
of a retained record, retained records without a key, and rows that may be emitted again."""

_PLACE = struct.Struct(">Iq")
_STAMP = struct.Struct(">Q")
_BIAS = 1 << 63


def place_suffix(partition: int, offset: int) -> bytes:
    """Return the suffix of an entry that stands for one source record."""
    return _PLACE.pack(partition, offset)


def read_place(suffix: bytes) -> tuple[int, int]:
    """Return partition and offset at the head of a suffix."""
    partition, offset = _PLACE.unpack_from(suffix)
    return int(partition), int(offset)


def stamp_suffix(ts: int) -> bytes:
    """Return the suffix of a dimension version."""
    return _STAMP.pack(ts + _BIAS)


class StepState:
    """The state partitions that one task owns, for one step."""

    def __init__(self, task: Task, step: int, partitions: int) -> None:
        self._task, self._step, self._count = task, step, partitions
        self._puts: dict[int, dict[bytes, bytes | None]] = defaultdict(dict)
        self._bulk: dict[int, list[pa.Table]] = defaultdict(list)
        self._dues: list[int] = []

    def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each entry key."""
        found: list[bytes | None] = [None] * len(keys)
        for part, places in self._by_part(keys).items():
            state = self._task.state(self._step, part)
            for place, value in zip(places, state.get([keys[p] for p in places]), strict=True):
                found[place] = value
        return found

    def look_up(self, side: int, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of the entry without suffix under each join key, null without one.

        Args:
            side: Side byte.
            keys: Join keys behind their shard byte, each once, none null.
        """
        entries = entry_keys(keys, side)
        order = pc.sort_indices(entries)
        entries = entries.take(order)
        parts = first_parts(entries, self._count)
        names = _objects(entries)
        found: list[bytes | None] = []
        for part in np.unique(parts).tolist():
            start, stop = np.searchsorted(parts, (part, part + 1)).tolist()
            found += self._task.state(self._step, part).get(names[start:stop])
        back = np.empty(len(names), np.int64)
        back[order.to_numpy()] = np.arange(len(names))
        return pa.array(found, pa.binary()).take(pa.array(back))

    def entries(
        self, side: int, keys: Sequence[bytes], suffixes: Sequence[bytes] | None = None
    ) -> tuple[list[int], list[bytes], list[bytes]]:
        """Return index into `keys`, suffix and value of all entries of a side.

        Args:
            side: Side byte.
            keys: Join keys behind their shard byte.
            suffixes: Where given, how the entries' suffixes begin.
        """
        index: list[int] = []
        names: list[bytes] = []
        values: list[bytes] = []
        starts = suffixes or [b""] * len(keys)
        for part, places in self._by_part(keys).items():
            state = self._task.state(self._step, part)
            found = state.scan([entry_key(keys[p], side, starts[p]) for p in places])
            index += [places[i] for i in found.index]
            names += [split_entry(key)[2] for key in found.keys]
            values += found.values
        return index, names, values

    def due(self, horizon: int) -> list[tuple[int, bytes]]:
        """Return due time and entry key of what falls due strictly before `horizon`.

        It also notes when the rest falls due, for `write`.
        """
        found: list[tuple[int, bytes]] = []
        for part in self._task.partitions:
            state = self._task.state(self._step, part)
            for shard in shards_of(part, self._count):
                start, stop = due_range(shard, horizon)
                for key in state.range(start, stop).keys:
                    _, due, entry = split_due(key)
                    found.append((due, entry))
                rest = due_range(shard, 1 << 70)[1]
                if stop is not None and stop != rest:
                    self._dues += [split_due(k)[1] for k in state.range(stop, rest, 1).keys]
        return found

    def put(self, key: bytes, value: bytes, due: int | None = None) -> None:
        """Write an entry, and its place in the index by due time where it has one."""
        changes = self._puts[part_of_shard(key[0], self._count)]
        changes[key] = value
        if due is not None:
            changes[due_key(key[0], due, key)] = b""
            self._dues.append(due)

    def put_all(self, side: int, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        """Write the entry without suffix under each join key; a null value deletes it."""
        changes = pa.table([entry_keys(keys, side), values], schema=CHANGES)
        parts = first_parts(keys, self._count)
        for part in np.unique(parts).tolist():
            self._bulk[part].append(changes.filter(pa.array(parts == part)))

    def delete(self, key: bytes, due: int | None = None) -> None:
        """Delete an entry, and its place in the index by due time where it has one."""
        changes = self._puts[part_of_shard(key[0], self._count)]
        changes[key] = None
        if due is not None:
            changes[due_key(key[0], due, key)] = None

    def write(self) -> int | None:
        """Hand the changes to the task.

        Returns:
            The earliest due time among the puts and, if `due` was asked, of what is left.
        """
        for part in sorted({*self._puts, *self._bulk}):
            changes = self._puts[part]
            single = to_changes(list(changes), list(changes.values()))
            self._task.write_changes(
                self._step, part, pa.concat_tables([single, *self._bulk[part]])
            )
        return min(self._dues, default=None)

    def _by_part(self, keys: Iterable[bytes]) -> dict[int, list[int]]:
        places: dict[int, list[int]] = defaultdict(list)
        parts = [part_of_shard(shard, self._count) for shard in range(SHARDS)]
        for i, key in enumerate(keys):
            places[parts[key[0]]].append(i)
        return places


def _objects(array: pa.BinaryArray) -> list[bytes]:
    return array.to_numpy(zero_copy_only=False).tolist()
