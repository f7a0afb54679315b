"""The groups of one task: as they were before the batch, with what the batch has changed since."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.operators.aggregate.entries import (
    GROUP,
    KEPT,
    Group,
    group_value,
    kept_suffix,
    over_at,
    read_entry,
    read_group,
)
from kaflow_engine.operators.aggregate.windows import Numbers
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.state.keys import entry_key

_MANY = 1000
"""Groups of each window from which on it is worth to ask first whether it has any in the state."""

Over = tuple[bytes, Group, int]
"""The key of an entry, the group, and the time behind which it is over."""


class Groups:
    """Reads see what the batch wrote before; `write` hands all of it to the task."""

    def __init__(self, aggregate: Aggregate, state: StepState) -> None:
        self._aggregate, self._state = aggregate, state
        self._groups: dict[bytes, Group | None] = {}
        self._gone: list[pa.BinaryArray] = []
        self._names: set[bytes] = set()
        self._seen = 0
        self._dues: dict[bytes, int] = {}
        self._kept: dict[bytes, dict[bytes, str | None]] = defaultdict(dict)

    def of(self, entries: Sequence[bytes]) -> list[Group | None]:
        """Return the groups under keys of entries; None where there is none."""
        while len(self._gone) > self._seen:
            self._names.update(self._gone[self._seen].to_pylist())
            self._seen += 1
        left = (e for e in entries if e not in self._groups and e not in self._names)
        wanted = sorted(set(left))
        values = self._state.values(wanted)
        read: dict[bytes, Group | None] = dict.fromkeys(entries)
        for entry, value in zip(wanted, values, strict=True):
            read[entry] = None if value is None else read_group(value)
        return [self._groups[e] if e in self._groups else read[e] for e in entries]

    def values(self, entries: pa.BinaryArray) -> pa.BinaryArray:
        """Return what is kept under keys of entries, each once; null where there is no group.

        Only where the batch has put no group before.

        Args:
            entries: In any order.
        """
        found = self._state.read(entries)
        for gone in (*self._gone, pa.array(list(self._groups), pa.binary())):
            if len(gone):
                nothing = pa.scalar(None, pa.binary())
                found = pc.if_else(pc.is_in(entries, gone), nothing, found)
        return found

    def in_windows(self, entries: pa.BinaryArray, starts: Numbers, ends: Numbers) -> pa.BinaryArray:
        """Return what `values` does, of groups of fixed windows.

        Nothing is looked up in windows of which the index by due time has no group: those that
        begin in a large batch.

        Args:
            entries: Each once, in any order.
            starts: Of the windows of each.
            ends: Of the same windows.
        """
        some, first = np.unique(starts, return_index=True)
        if self._aggregate.window is None or len(entries) < _MANY * len(some):
            return self.values(entries)
        held = [self._has_any(end) for end in ends[first].tolist()]
        known = np.isin(starts, some[held])
        found = self.values(entries.filter(pa.array(known)))
        return found.take(pa.array(np.cumsum(known) - 1, mask=~known))

    def _has_any(self, end: int) -> bool:
        """Tell whether there may be a group of a window; a grace of the past was not longer."""
        last = end + self._aggregate.grace - 1
        return self._state.has_due(end - 1, last)

    def put_all(
        self, entries: pa.BinaryArray, values: pa.BinaryArray, known: pa.BooleanArray, dues: Numbers
    ) -> None:
        """Keep groups that `values` returned.

        Args:
            entries: Their keys.
            values: What is kept of them.
            known: Those that were there before.
            dues: The times behind which they are over; none: they stay for good.
        """
        new = pc.invert(known)
        if len(dues):
            self.put_until(
                entries.filter(new), values.filter(new), dues[new.to_numpy(zero_copy_only=False)]
            )
        else:
            self._state.change(entries.filter(new), values.filter(new))
        self._state.change(entries.filter(known), values.filter(known))
        if self._groups:  # what was forgotten begins again
            for entry in set(self._groups).intersection(entries.filter(new).to_pylist()):
                del self._groups[entry]

    @property
    def is_untouched(self) -> bool:
        """Whether the batch has kept no group so far; it may have forgotten some."""
        return not any(self._groups.values())

    def under(self, keys: Sequence[bytes]) -> dict[bytes, dict[bytes, Group]]:
        """Return the groups of all windows of each key, by the keys of their entries."""
        found: dict[bytes, dict[bytes, Group]] = {key: {} for key in keys}
        index, suffixes, values = self._state.entries(GROUP, keys)
        for i, suffix, value in zip(index, suffixes, values, strict=True):
            found[keys[i]][entry_key(keys[i], GROUP, suffix)] = read_group(value)
        for entry, group in self._groups.items():
            key, _ = read_entry(self._aggregate, entry)
            if key not in found:
                continue
            found[key].pop(entry, None)
            if group is not None:
                found[key][entry] = group
        return found

    def put(self, entry: bytes, group: Group, *, known: bool) -> None:
        """Keep a group.

        Args:
            entry: Its key.
            group: What is kept of it.
            known: It was there before; the time at which it is over is noted once, and looked at
                again then.
        """
        self._groups[entry] = group
        _, start = read_entry(self._aggregate, entry)
        due = None if known else over_at(self._aggregate, group, start)
        if due is not None:
            self._dues[entry] = due

    def drop(self, entry: bytes) -> None:
        """Forget a group; not its rows."""
        self._groups[entry] = None

    def over_already(self, watermark: int) -> list[Over]:
        """Forget the groups of this batch that are over, and return them."""
        mine = [e for e, due in self._dues.items() if due < watermark and self._groups[e]]
        found, later = self._over(mine, watermark)
        self._dues.update(later)
        return found

    def due(self, watermark: int) -> Iterator[pa.BinaryArray]:
        """Yield entries that were there before the batch and may be over; the index holds them no
        longer."""
        for due in self._state.take_due(watermark):
            yield due.entries

    def over(self, due: pa.BinaryArray, watermark: int) -> list[Over]:
        """Forget the groups among what is due that are over, and return them."""
        entries: list[bytes] = due.to_pylist()
        found, later = self._over(entries, watermark)
        self._state.remove([entry for entry in entries if entry not in later])
        for entry, at in later.items():
            self._state.postpone(entry, at)
        return found

    def forget(self, entries: pa.BinaryArray) -> None:
        """Forget all groups that are due; they are over, and the batch has not changed them."""
        self._state.remove(entries)
        self._gone.append(entries)

    def put_until(self, entries: pa.BinaryArray, values: pa.BinaryArray, overs: Numbers) -> None:
        """Keep groups of which the index holds none, and that the batch does not change beside.

        Args:
            entries: Their keys.
            values: What is kept of them.
            overs: The times behind which they are over.
        """
        mixed = self._aggregate.window is None
        self._state.put_until(entries, values, overs, mixed=mixed)

    def _over(
        self, entries: Sequence[bytes], watermark: int
    ) -> tuple[list[Over], dict[bytes, int]]:
        """Return the groups that are over, and when others will be that were due."""
        found: list[Over] = []
        later: dict[bytes, int] = {}
        for entry, group in zip(entries, self.of(entries), strict=True):
            if group is None or (entry in self._groups and self._groups[entry] is None):
                continue  # forgotten before, or noted twice
            at = over_at(self._aggregate, group, read_entry(self._aggregate, entry)[1])
            if at is not None and at < watermark:
                self._groups[entry] = None
                found.append((entry, group, at))
            elif at is not None:
                later[entry] = at
        return found, later

    def rows(self, entries: Sequence[bytes]) -> dict[bytes, dict[bytes, str]]:
        """Return the rows that are kept for groups, each group's in their order, by their tails."""
        keys, starts = zip(*(read_entry(self._aggregate, e) for e in entries), strict=True)
        prefixes = [kept_suffix(start, b"") for start in starts]
        index, suffixes, values = self._state.entries(KEPT, keys, prefixes)
        found: dict[bytes, dict[bytes, str | None]] = {entry: {} for entry in entries}
        for i, suffix, value in zip(index, suffixes, values, strict=True):
            found[entries[i]][suffix[len(prefixes[i]) :]] = value.decode()
        for entry in found:
            found[entry].update(self._kept.get(entry, {}))
        return {
            entry: {tail: row for tail, row in sorted(rows.items()) if row is not None}
            for entry, rows in found.items()
        }

    def keep(self, entry: bytes, tail: bytes, row: str | None) -> None:
        """Keep a row of a group; None: no longer."""
        self._kept[entry][tail] = row

    def write(self) -> int | None:
        """Hand the changes to the task; returns the earliest time at which something is over."""
        state = self._state
        for entry, group in self._groups.items():
            if group is None:
                state.delete(entry)
            else:
                state.put(entry, group_value(group), self._dues.get(entry))
        for entry, rows in self._kept.items():
            key, start = read_entry(self._aggregate, entry)
            for tail, row in rows.items():
                name = entry_key(key, KEPT, kept_suffix(start, tail))
                if row is None:
                    state.delete(name)
                else:
                    state.put(name, row.encode())
        return state.write()
