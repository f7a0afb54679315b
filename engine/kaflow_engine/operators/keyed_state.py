"""Keyed state as an operator sees it: entries by join key, those by due time, and what changes."""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.rows.partitioning import SHARDS, first_parts, part_of_shard, shards_of
from kaflow_engine.operators.rows.task import Task
from kaflow_engine.state.binary_columns import Items, put_back
from kaflow_engine.state.changed import Changed
from kaflow_engine.state.due_index import AT_ONCE, Dues, of_index, read_index, to_pages
from kaflow_engine.state.keys import (
    due_key,
    due_keys,
    entry_key,
    entry_keys,
)
from kaflow_engine.state.log.changes import CHANGES, to_changes
from kaflow_engine.state.reader import StateReader, successor

DRIVER, WAITING, MATCH, KEYLESS, EMITTED = 100, 101, 102, 103, 104
"""Side bytes of entries that are not a side's own: retained driving records, waiting rows, matches
of a retained record, retained records without a key, and rows that may be emitted again."""

_LIKELY = 64
"""Bytes that one entry takes in a page of the index, roughly."""

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
    """The state partitions that one task owns, for one operator."""

    def __init__(self, task: Task, step: int, partitions: int) -> None:
        self._task, self._step, self._count = task, step, partitions
        self._single: dict[int, dict[bytes, bytes | None]] = defaultdict(dict)
        self._changes: dict[int, list[pa.Table]] = defaultdict(list)
        self._dues: list[int] = []
        self._shown: dict[int, StateReader] = {}

    def show_changes(self) -> None:
        """Let reads see what was changed so far, as if the batch before had done so."""
        self._gather()
        for part, tables in self._changes.items():
            changed = pa.concat_tables(tables)
            names, values = (changed.column(i).to_pylist() for i in range(2))
            self._shown[part] = Changed(
                self._task.state(self._step, part), dict(zip(names, values, strict=True))
            )

    def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each entry key."""
        found: list[bytes | None] = [None] * len(keys)
        for part, places in self._by_part(keys).items():
            state = self._state(part)
            for place, value in zip(places, state.get([keys[p] for p in places]), strict=True):
                found[place] = value
        return found

    def look_up(self, side: int, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of the entry without suffix under each join key, null without one.

        Args:
            side: Side byte.
            keys: Join keys behind their shard byte, each once, none null.
        """
        return self.read(entry_keys(keys, side))

    def read(self, entries: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of each entry key, null where there is none.

        Args:
            entries: Each once, in any order.
        """
        parts = first_parts(entries, self._count)
        found = [pa.array([], pa.binary())]
        order = [np.array([], np.int64)]
        for part in np.unique(parts).tolist():
            order.append(np.flatnonzero(parts == part))
            found.append(self._state(part).read(entries.take(pa.array(order[-1]))))
        return put_back(pa.concat_arrays(found), np.concatenate(order))

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
            state = self._state(part)
            prefixes = [entry_key(keys[p], side, starts[p]) for p in places]
            found = state.scan(prefixes)
            index += [places[i] for i in found.index]
            heads = [len(prefixes[n]) - len(starts[places[n]]) for n in range(len(places))]
            names += [key[heads[i] :] for i, key in zip(found.index, found.keys, strict=True)]
            values += found.values
        return index, names, values

    def few(self, side: int, keys: Sequence[bytes], most: Sequence[int]) -> list[list[bytes]]:
        """Return the suffixes of the first entries of a side under each join key.

        Args:
            side: Side byte.
            keys: Join keys behind their shard byte.
            most: How many of each.
        """
        found: list[list[bytes]] = []
        for key, count in zip(keys, most, strict=True):
            prefix = entry_key(key, side)
            state = self._state(part_of_shard(key[0], self._count))
            names = state.range(prefix, successor(prefix), count).keys
            found.append([name[len(prefix) :] for name in names])
        return found

    def has(self, side: int) -> bool:
        """Return whether there is any entry of a side."""
        return any(
            self._state(part).range(bytes((shard, side)), bytes((shard, side + 1)), 1).keys
            for part in self._task.partitions
            for shard in shards_of(part, self._count)
        )

    def due(self, horizon: int) -> Iterator[list[tuple[int, bytes]]]:
        """Yield due time and entry key as `take_due` does."""
        for dues in self.take_due(horizon):
            yield list(zip(dues.times.tolist(), dues.entries.to_pylist(), strict=True))

    def take_due(self, horizon: int) -> Iterator[Dues]:
        """Take what falls due strictly before `horizon` out of the index by due time.

        They come in parts, because any number may fall due at once. When all are taken, it is noted
        for `write` when the rest falls due.
        """
        keys: list[bytes] = []
        values: list[bytes] = []
        likely = 0
        for part in self._task.partitions:
            state = self._state(part)
            for found, rest in read_index(state, shards_of(part, self._count), horizon):
                keys += found.keys
                values += found.values
                self._dues += [] if rest is None else [rest]
                likely += len(found.keys) + sum(map(len, found.values)) // _LIKELY
                if likely >= AT_ONCE:
                    yield self._taken(keys, values, horizon)
                    keys, values, likely = [], [], 0
        if keys:
            yield self._taken(keys, values, horizon)

    def _taken(self, keys: list[bytes], values: list[bytes], horizon: int) -> Dues:
        self._add(pa.array(keys, pa.binary()), pa.nulls(len(keys), pa.binary()))
        dues = of_index(keys, values)
        now = dues.times < horizon
        if now.all():
            return dues
        self._note(dues.filter(~now), mixed=True)
        return dues.filter(now)

    def _note(self, dues: Dues, *, mixed: bool) -> None:
        self._add(*to_pages(dues, mixed=mixed))
        self._dues.append(int(dues.times.min()))

    def remove(self, entries: Sequence[bytes] | pa.BinaryArray) -> None:
        """Delete entries that have no place in the index by due time, or were taken out of it."""
        names = pa.array(entries, pa.binary())
        self.change(names, pa.nulls(len(names), pa.binary()))

    def forget(self, due: list[tuple[int, bytes]]) -> None:
        """Delete entries before they fall due, and their places in the index by due time."""
        names = pa.array([entry for _, entry in due], pa.binary())
        dues = np.array([at for at, _ in due], np.int64)
        self.change(names, pa.nulls(len(names), pa.binary()), dues)

    def has_due(self, first: int, last: int) -> bool:
        """Tell whether the index has anything that falls due from `first` to `last`."""
        return any(
            self._state(part)
            .range(due_key(shard, first, b""), due_key(shard, last + 1, b""), 1)
            .keys
            for part in self._task.partitions
            for shard in shards_of(part, self._count)
        )

    def postpone(self, key: bytes, later: int) -> None:
        """Give an entry, which was due, another place in the index by due time."""
        self._single[part_of_shard(key[0], self._count)][due_key(key[0], later, key)] = b""
        self._dues.append(later)

    def put(self, key: bytes, value: bytes, due: int | None = None) -> None:
        """Write an entry, and its place in the index by due time where it has one."""
        changes = self._single[part_of_shard(key[0], self._count)]
        changes[key] = value
        if due is not None:
            changes[due_key(key[0], due, key)] = b""
            self._dues.append(due)

    def delete(self, key: bytes) -> None:
        """Delete an entry that has no due time."""
        self._single[part_of_shard(key[0], self._count)][key] = None

    def change(
        self, keys: pa.BinaryArray, values: pa.BinaryArray, dues: Items | None = None
    ) -> None:
        """Write many entries, and their places in the index by due time; a null value deletes."""
        if not len(keys):
            return
        self._add(keys, values)
        if dues is not None:
            kept = values.is_valid()
            self._add(due_keys(keys, dues), pc.if_else(kept, pa.scalar(b"", pa.binary()), None))
            put = dues[kept.to_numpy(zero_copy_only=False)]
            self._dues += [int(put.min())] if len(put) else []

    def put_until(
        self, keys: pa.BinaryArray, values: pa.BinaryArray, dues: Items, *, mixed: bool
    ) -> None:
        """Write many entries that stay until they fall due: the index holds them in pages.

        Args:
            keys: Each once, of entries that are not there.
            values: As many, none of them null.
            dues: When they fall due.
            mixed: As of `to_pages`; `has_due` finds a time only where they are not.
        """
        if len(keys):
            self._add(keys, values)
            self._note(Dues(dues, keys), mixed=mixed)

    def write(self) -> int | None:
        """Hand the changes to the task.

        Returns:
            The earliest due time among the puts and, if `due` was asked, of what is left.
        """
        self._gather()
        for part in sorted(self._changes):  # each is let go of, for they may be many
            self._task.write_changes(self._step, part, pa.concat_tables(self._changes.pop(part)))
        return min(self._dues, default=None)

    def _state(self, part: int) -> StateReader:
        return self._shown.get(part) or self._task.state(self._step, part)

    def _add(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        self._gather()  # what was written before must stand before
        changes = pa.table([keys, values], schema=CHANGES)
        parts = first_parts(keys, self._count)
        for part in np.unique(parts).tolist():
            self._changes[part].append(keep(changes, pa.array(parts == part)))

    def _gather(self) -> None:
        for part, changes in self._single.items():
            self._changes[part].append(to_changes(list(changes), list(changes.values())))
        self._single.clear()

    def _by_part(self, keys: Iterable[bytes]) -> dict[int, list[int]]:
        places: dict[int, list[int]] = defaultdict(list)
        parts = [part_of_shard(shard, self._count) for shard in range(SHARDS)]
        for i, key in enumerate(keys):
            places[parts[key[0]]].append(i)
        return places
