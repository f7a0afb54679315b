"""Groups of rows as they change, one record at a time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from tests.reference.grouping import END, START, Entry, Grouping, Hop, Session
from tests.reference.pipeline import Write
from tests.reference.records import DeadLetter, Emitted, Record

Keys = tuple[object, ...]


@dataclass(slots=True)
class _Group:
    """A group, or one window of it."""

    start: int | None
    end: int | None
    ts: int
    """Greatest of its rows."""
    first: int
    """Least of its rows."""
    rows: list[tuple[int, Entry]] = field(default_factory=list[tuple[int, Entry]])
    """Each with its number, which says in which order they came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A window that leaves."""

    due: int
    keys: Keys
    values: Entry
    ts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A group that is not what was sent of it."""

    keys: Keys
    start: int | None
    values: Entry | None
    """None: it is no longer there, or does not fulfil HAVING."""
    ts: int


class Level:
    """The groups of one GROUP BY."""

    def __init__(self, grouping: Grouping) -> None:
        self.late = 0
        self._by = grouping
        self._watermark: float | None = None
        self._groups: dict[Keys, dict[int | None, _Group]] = {}
        self._sent: dict[Keys, dict[int | None, tuple[Entry, int]]] = {}
        self._touched: dict[Keys, None] = {}
        self._numbers = 0

    def start_batch(self, watermark: float | None) -> None:
        """Fix the watermark for one batch."""
        self._watermark = None if watermark is None else watermark - self._by.delay

    def take(self, entry: Entry, ts: int, early: bool) -> bool:
        """Take a row; false where it is late, which an `early` one, of phase 0, never is.

        Of DISTINCT: whether it leaves.
        """
        keys = tuple(entry[name] for name in self._by.keys)
        groups = self._groups.setdefault(keys, {})
        if self._by.distinct:
            return groups.setdefault(None, new := _Group(None, None, ts, ts)) is new
        self._numbers += 1
        found = self._windows(groups, ts, early)
        for group in found:
            group.ts, group.first = max(group.ts, ts), min(group.first, ts)
            group.rows.append((self._numbers, entry))
        if found:
            self._touched[keys] = None
        else:
            self.late += 1
        return bool(found)

    def close(self) -> tuple[list[Closed], list[Change]]:
        """Forget what is over; return it where the result is final, else what was not yet sent."""
        over = [
            (due, keys, start)
            for keys, groups in self._groups.items()
            for start, group in groups.items()
            if (due := self._due(group, self._watermark)) is not None
        ]
        found: list[Closed] = []
        changes: list[Change] = []
        for due, keys, start in over:
            if not self._by.final:
                changes += self._change(keys, start)
            group = self._groups[keys].pop(start)
            self._sent.get(keys, {}).pop(start, None)
            values = self._values(keys, group)
            found.append(Closed(due=due, keys=keys, values=values, ts=group.ts))
        found.sort(key=lambda each: (each.due, [_order(key) for key in each.keys]))
        leaves = self._by.final and not self._by.distinct
        return (found if leaves else []), changes

    def is_due(self, watermark: float | None) -> bool:
        """Tell whether a batch with a watermark would close something."""
        own = None if watermark is None else watermark - self._by.delay
        groups = (group for some in self._groups.values() for group in some.values())
        return any(self._due(group, own) is not None for group in groups)

    def changes(self) -> Iterator[Change]:
        """Yield what has changed since it was sent, deletes first."""
        touched, self._touched = self._touched, {}
        for keys in () if self._by.final else touched:
            groups = self._groups[keys]
            gone = [start for start in self._sent.get(keys, {}) if start not in groups]
            for start in (*sorted(gone, key=lambda start: start or 0), *groups):
                yield from self._change(keys, start)

    def _change(self, keys: Keys, start: int | None) -> list[Change]:
        """Compare a group with what was sent of it, and send it if it differs."""
        sent, group = self._sent.setdefault(keys, {}), self._groups[keys].get(start)
        shown = None if group is None else self._by.shown(self._values(keys, group))
        values, ts = sent.get(start, (None, 0))
        ts = ts if group is None else group.ts
        if shown == values:
            return []
        if shown is None:
            del sent[start]
        else:
            sent[start] = shown, ts
        return [Change(keys=keys, start=start, values=shown, ts=ts)]

    def _windows(self, groups: dict[int | None, _Group], ts: int, early: bool) -> list[_Group]:
        mark = None if early else self._watermark
        match self._by.window:
            case None:
                return [groups.setdefault(None, _Group(None, None, ts, ts))]
            case Hop(size=size) as hop:
                starts = [
                    start
                    for start in hop.starts(ts)
                    if mark is None or mark < start + size + self._by.grace
                ]
                return [groups.setdefault(s, _Group(s, s + size, ts, ts)) for s in starts]
            case Session(gap=gap):
                near = [g for g in groups.values() if g.first - gap <= ts <= g.ts + gap]
                if not near and mark is not None and ts + gap + self._by.grace < mark:
                    return []
                return [_joined(groups, near, ts, gap)]
            case _:
                assert_never(self._by.window)

    def _due(self, group: _Group, mark: float | None) -> int | None:
        """Return when a group fell due, None where it is still open."""
        if mark is None:
            return None
        if group.end is None:
            ttl = self._by.ttl
            if ttl is None and self._by.distinct:
                ttl = self._by.remembers
            due = None if ttl is None else group.ts + ttl
            return due if due is not None and mark > due else None
        due = group.end + self._by.grace
        over = mark > due if isinstance(self._by.window, Session) else mark >= due
        return due if over else None

    def _values(self, keys: Keys, group: _Group) -> Entry:
        rows = [entry for _, entry in sorted(group.rows, key=lambda each: each[0])]
        return {
            **dict(zip(self._by.keys, keys, strict=True)),
            **{call.name: call.of(rows) for call in self._by.calls},
            **({} if group.start is None else {START: group.start, END: group.end}),
        }


class Groups:
    """What an output with GROUP BY makes of the rows that its joins and WHERE let through."""

    def __init__(self, write: Write, chain: str) -> None:
        self._write, self._chain = write, chain
        self._levels = [Level(grouping) for grouping in write.groups]
        self._letters: list[DeadLetter] = []
        self._firsts: list[Emitted] = []

    def start_batch(self, watermark: float | None) -> None:
        """Fix the watermark for one batch."""
        for level in self._levels:
            level.start_batch(watermark)

    def take(self, row: Emitted, record: Record, *, early: bool) -> None:
        """Take a row; `early`: it leaves a join because its time is up."""
        assert row.value is not None
        first = self._write.groups[0]
        taken = self._take(0, row.value, row.timestamp, early)
        if not (taken or first.distinct) and first.on_late == "dead_letter":
            place = record.topic, record.partition, record.offset
            self._letters.append(DeadLetter(*place, "late", self._chain))

    def _take(self, place: int, values: Entry, ts: int, early: bool) -> bool:
        """Take a row; of DISTINCT, what is the first one goes on at once."""
        by, taken = self._write.groups[place], self._levels[place].take(values, ts, early)
        if not by.distinct or not taken:
            return taken
        shown = by.shown(values)
        if shown is None:
            return taken
        if place + 1 < len(self._levels):
            self._take(place + 1, shown, ts, early)
        else:
            write = self._write
            key = None if write.key is None else shown[write.key]
            self._firsts.append(Emitted(topic=write.topic, key=key, value=shown, timestamp=ts))
        return taken

    def close(self) -> list[Emitted]:
        """Close windows, those of an inner GROUP BY first."""
        rows: list[Emitted] = []
        for place, level in enumerate(self._levels):
            over, changes = level.close()
            rows += [self._changed(change) for change in changes]
            for closed in over:
                values = self._write.groups[place].shown(closed.values)
                if values is None:
                    continue
                if place + 1 < len(self._levels):
                    self._take(place + 1, values, closed.ts, True)
                else:
                    start = closed.values.get(START)
                    rows.append(self._emitted(closed.keys, start, values, closed.ts))
        return rows + self._leaving()

    def end_record(self) -> list[Emitted]:
        """Return what leaves with a record."""
        return self._leaving() + (self._changes() if self._write.groups[-1].each else [])

    def end_batch(self) -> tuple[list[Emitted], list[DeadLetter]]:
        """Return what leaves with a batch."""
        letters, self._letters = self._letters, []
        return self._changes(), letters

    def is_due(self, watermark: float | None) -> bool:
        """Tell whether the next batch closes something."""
        return any(level.is_due(watermark) for level in self._levels)

    @property
    def late(self) -> int:
        """How many rows were late."""
        return sum(level.late for level in self._levels)

    def _leaving(self) -> list[Emitted]:
        found, self._firsts = self._firsts, []
        return found

    def _changes(self) -> list[Emitted]:
        return [self._changed(change) for change in self._levels[-1].changes()]

    def _changed(self, change: Change) -> Emitted:
        return self._emitted(change.keys, change.start, change.values, change.ts)

    def _emitted(self, keys: Keys, start: object, values: Entry | None, ts: int) -> Emitted:
        write = self._write
        key = self._key(keys, start) if write.key is None or values is None else values[write.key]
        return Emitted(topic=write.topic, key=key, value=values, timestamp=ts)

    def _key(self, keys: Keys, start: object) -> str:
        named = self._write.groups[-1].named()
        if len(keys) == 1 and keys[0] is not None and start is None:
            return str(keys[0])
        shown = {name: key for (name, _), key in zip(named, keys, strict=True)}
        return json.dumps(
            shown if start is None else {**shown, START: start}, separators=(",", ":")
        )


def _joined(groups: dict[int | None, _Group], near: list[_Group], ts: int, gap: int) -> _Group:
    """Make one session of those that an instant is near to."""
    for each in near:
        del groups[each.start]
    first, last = min([ts, *(g.first for g in near)]), max([ts, *(g.ts for g in near)])
    rows = [row for each in near for row in each.rows]
    groups[first] = _Group(first, last + gap, last, first, rows)
    return groups[first]


def _order(key: object) -> tuple[bool, object]:
    return key is None, key
