"""The groups of one GROUP BY as they change, one row at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from tests.reference.grouping import END, START, Entry, Grouping, Hop, Session

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
    held: bool = False
    """Its row waits for the end of the window."""


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
        found = self._windows(groups, entry, ts, early)
        for group in found:
            group.ts, group.first = max(group.ts, ts), min(group.first, ts)
            group.rows.append((self._numbers, entry))
        if found:
            self._touched[keys] = None
        else:
            self.late += 1
        return bool(found)

    def close(self) -> tuple[list[Closed], list[Change], list[tuple[Keys, int | None]]]:
        """Forget what is over; return it where the result is final, else what was not yet sent, and
        the windows that change no more."""
        changes = self._end()
        over = [
            (due, keys, start)
            for keys, groups in self._groups.items()
            for start, group in groups.items()
            if (due := self._due(group, self._watermark)) is not None
        ]
        found: list[Closed] = []
        for due, keys, start in over:
            if not self._by.final:
                changes += self._change(keys, start)
            group = self._groups[keys].pop(start)
            self._sent.get(keys, {}).pop(start, None)
            values = self._values(keys, group)
            found.append(Closed(due=due, keys=keys, values=values, ts=group.ts))
        found.sort(key=lambda each: (each.due, [_order(key) for key in each.keys]))
        leaves = self._by.final and not self._by.distinct
        windows = self._by.window is not None and not self._by.final
        ended = [(keys, start) for _, keys, start in over] if windows else []
        return (found if leaves else []), changes, ended

    def _end(self) -> list[Change]:
        """Let the rows of windows leave that have ended; under a batch they leave with it, if
        nothing closes them before."""
        ended = [
            (keys, group)
            for keys, groups in self._groups.items()
            for group in groups.values()
            if group.held and self._is_past(group.end, self._watermark)
        ]
        changes: list[Change] = []
        for keys, group in ended:
            group.held = False
            self._touched[keys] = None
            if self._by.each:
                changes += self._change(keys, group.start)
        return changes

    def is_due(self, watermark: float | None) -> bool:
        """Tell whether a batch with a watermark would close something."""
        own = None if watermark is None else watermark - self._by.delay
        groups = (group for some in self._groups.values() for group in some.values())
        return any(
            self._due(group, own) is not None or (group.held and self._is_past(group.end, own))
            for group in groups
        )

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
        if group is not None and group.held:
            return []
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

    def _windows(
        self, groups: dict[int | None, _Group], entry: Entry, ts: int, early: bool
    ) -> list[_Group]:
        mark = None if early else self._watermark
        named = None if self._by.start is None else entry[self._by.start]
        assert named is None or isinstance(named, int)
        match self._by.window:
            case None:
                return [groups.setdefault(None, _Group(None, None, ts, ts))]
            case Hop(size=size) as hop:
                starts = [
                    start
                    for start in (hop.starts(ts) if named is None else [named])
                    if mark is None or mark < start + size + self._by.grace
                ]
                return [
                    groups.setdefault(
                        s, _Group(s, s + size, ts, ts, held=self._waits(s + size, early))
                    )
                    for s in starts
                ]
            case Session(gap=gap):
                near = [g for g in groups.values() if g.first - gap <= ts <= g.ts + gap]
                if not near and mark is not None and ts + gap + self._by.grace < mark:
                    return []
                whole = _joined(groups, near, ts, gap)
                whole.held = all(g.held for g in near) and self._waits(whole.end, early)
                return [whole]
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
        return due if self._is_past(due, mark) else None

    def _waits(self, end: int | None, early: bool) -> bool:
        """Tell whether the row of a window that begins waits for its end."""
        return self._by.ended and (early or not self._is_past(end, self._watermark))

    def _is_past(self, end: int | None, mark: float | None) -> bool:
        """Tell whether no row comes to a window any more that is on time: one at exactly the end of
        a session does."""
        if end is None or mark is None:
            return False
        return mark > end if isinstance(self._by.window, Session) else mark >= end

    def _values(self, keys: Keys, group: _Group) -> Entry:
        rows = [entry for _, entry in sorted(group.rows, key=lambda each: each[0])]
        return {
            **dict(zip(self._by.keys, keys, strict=True)),
            **{call.name: call.of(rows) for call in self._by.calls},
            **({} if group.start is None else {START: group.start, END: group.end}),
        }


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
