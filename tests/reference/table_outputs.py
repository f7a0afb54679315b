"""What outputs over tables send: rows that changed, or groups of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.reference.records import DeadLetter, Emitted
from tests.reference.table_query import Part, TableWrite, named_parts
from tests.reference.table_values import RowFails
from tests.reference.tables import Change, Joined, Key, OneTables

Value = dict[str, Any]


class _Sent:
    """What was sent of each key, and what changed since."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self._sent: dict[Key, Value] = {}
        self._touched: dict[Key, int] = {}
        self._marks: dict[Key, int] = {}

    def touch(self, key: Key, ts: int) -> None:
        """Note a change; the `ts` of a key never goes back while it is there."""
        self._marks[key] = max(ts, self._marks.get(key, ts))
        self._touched[key] = self._marks[key]

    def begin_again(self, key: Key) -> None:
        """Let the `ts` of a key that is gone begin again."""
        self._marks.pop(key, None)

    def take_touched(self) -> dict[Key, int]:
        """Return the keys that were touched since the last time."""
        touched, self._touched = self._touched, {}
        return touched

    def differs(self, key: Key, value: Value | None) -> bool:
        """Note what there is of a key now, and tell whether that is new."""
        if self._sent.get(key) == value:
            return False
        if value is None:
            del self._sent[key]
        else:
            self._sent[key] = value
        return True


class RowsOut:
    """An output of joined rows, each under its key."""

    def __init__(self, write: TableWrite, tables: OneTables, key: tuple[Part, ...]) -> None:
        self.write = write
        self._tables, self._key = tables, key
        self._now: dict[Key, Change] = {}
        self._sent = _Sent()

    def take(self, changes: Iterable[Change]) -> None:
        """Take what a record changed."""
        for change in changes:
            self._now[change.key] = change
            self._sent.touch(change.key, change.ts)

    def leave(self) -> list[Emitted]:
        """Return what leaves now."""
        found: list[Emitted] = []
        for key in self._sent.take_touched():
            change = self._now.pop(key)
            value = self._value(key, change.new)
            if value is None:
                self._sent.begin_again(key)
            if self._sent.differs(key, value):
                names = list(named_parts(self._key, self.write.select))
                topic, text = self.write.topic, key_text(key, names, self.write.discriminator)
                found.append(Emitted(topic=topic, key=text, value=value, timestamp=change.ts))
        return found

    def _value(self, key: Key, joined: Joined | None) -> Value | None:
        if joined is None:
            return None
        evaluate = self._tables.evaluator.of_row
        try:
            if not self._tables.evaluator.passes(joined.row, self.write.where):
                return None
            values = evaluate(joined.row, [sql for _, sql in self.write.select])
        except RowFails:
            self._tables.fail("sql", key)
            return None
        names = [name for name, _ in self.write.select]
        return dict(zip(names, values, strict=True))


class GroupsOut:
    """An output of groups of joined rows."""

    def __init__(self, write: TableWrite, tables: OneTables) -> None:
        assert write.groups is not None
        self.write = write
        self._groups: tuple[str, ...] = write.groups
        self._tables = tables
        self._rows: dict[Key, tuple[Key, Key, Joined]] = {}
        """Of each joined row its group, and what the calls read of it."""
        self._began = False
        self._sent = _Sent()
        self._failed: set[Key] = set()

    def take(self, changes: Iterable[Change]) -> None:
        """Take what a record changed."""
        left: set[Key] = set()
        for change in changes:
            old = self._rows.get(change.key)
            new = None if change.new is None else self._entry(change.key, change.new)
            if old is not None and old[:2] == new:
                continue  # nothing of it has changed that is grouped or calculated
            if old is not None:
                del self._rows[change.key]
                self._sent.touch(old[0], change.ts)
                left.add(old[0])
            if change.new is not None and new is not None:
                self._rows[change.key] = *new, change.new
                self._sent.touch(new[0], change.ts)
                self._began = True
        there = {group for group, _, _ in self._rows.values()}
        for group in left - there if self._groups else ():
            self._sent.begin_again(group)

    def leave(self) -> list[Emitted]:
        """Return what leaves now."""
        found: list[Emitted] = []
        for group, ts in self._sent.take_touched().items():
            try:
                value = self._value(group)
            except RowFails:
                if group not in self._failed:
                    self._failed.add(group)
                    self._tables.fail("result")
                continue
            if self._sent.differs(group, value):
                names = [self.write.named(sql) for sql in self._groups]
                text = key_text(group, names, self.write.discriminator)
                found.append(Emitted(topic=self.write.topic, key=text, value=value, timestamp=ts))
        return found

    def end_batch(self) -> None:
        """Let a group that fails say so in the next batch too."""
        self._failed.clear()

    def _entry(self, key: Key, joined: Joined) -> tuple[Key, Key] | None:
        """Return the group of a row, and what the calls read of it; None where it is in none."""
        evaluate = self._tables.evaluator.of_row
        try:
            if not self._tables.evaluator.passes(joined.row, self.write.where):
                return None
            read = evaluate(joined.row, self.write.entry)
            return evaluate(joined.row, self._groups), read
        except RowFails:
            self._tables.fail("sql", key)
            return None

    def _value(self, group: Key) -> Value | None:
        rows = [joined for own, _, joined in self._rows.values() if own == group]
        if not rows and (self._groups or not self._began):
            return None
        rows.sort(key=lambda joined: joined.formed)
        by = f"GROUP BY {', '.join(self._groups)}" if self._groups else ""
        having = f"HAVING {self.write.having}" if self.write.having else ""
        given = [joined.row for joined in rows]
        return self._tables.evaluator.of_group(given, self.write.select, by, having)


def key_text(
    key: Sequence[object], names: Sequence[str], discriminator: tuple[str, object] | None
) -> str:
    """Return the Kafka key: the text of the only value, or JSON."""
    if len(key) == 1 and key[0] is not None and discriminator is None:
        return str(key[0])
    first = [] if discriminator is None else [discriminator]
    shown: Mapping[str, object] = dict([*first, *zip(names, key, strict=True)])
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
