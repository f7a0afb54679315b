"""Groups of rows as they change, one record at a time."""

import json

from tests.reference.grouping import START, Entry
from tests.reference.level import Change, Keys, Level
from tests.reference.pipeline import Write
from tests.reference.records import DeadLetter, Emitted, Record
from tests.reference.unions import NotExpressible


class Groups:
    """What an output with GROUP BY makes of the rows that its joins and WHERE let through."""

    def __init__(self, write: Write, chain: str) -> None:
        if any(not (by.final or by.distinct) for by in write.groups[:-1]):
            raise NotExpressible("groups of groups that change")
        self._write, self._chain = write, chain
        self._levels = [Level(grouping) for grouping in write.groups]
        self._letters: list[DeadLetter] = []
        self._firsts: list[Emitted] = []
        self._closed: set[tuple[str, object]] = set()

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
            over, changes, ended = level.close()
            for keys, start in ended if level is self._levels[-1] else ():
                self._closed.add((self._write.topic, self._key(keys, start)))
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

    def take_closed(self) -> set[tuple[str, object]]:
        """Return topic and key of the windows that a batch closed, and that change no more."""
        closed, self._closed = self._closed, set()
        return closed

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
