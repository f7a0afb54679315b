"""Topics as tables and what is joined of them, one record at a time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

from tests.reference.records import DeadLetter, Record
from tests.reference.table_query import KAFKA_KEY, TableJoin, Tables, TableTopic
from tests.reference.table_values import Evaluator, Row, RowFails, as_type

Key = tuple[object, ...]

FATES = ("dead_letter", "used", "filtered", "null_key", "skipped")
"""What may become of a record in a table; of several tables the first that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A row of a topic."""

    values: Mapping[str, object]
    ts: int
    """The greatest of the records that ever touched it, an equal row too."""
    changed: int
    """What that was when its content changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A row of the joined tables."""

    row: Row
    ts: int
    """The greatest of its parts."""
    formed: int
    """When it took its present form, among others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A joined row that is not what it was."""

    key: Key
    old: Joined | None
    new: Joined | None
    ts: int


class OneTables:
    """The tables of one chain.

    Args:
        tables: What is read and joined.
        topics: All topics.
        kept: The columns that count, by alias.
        asked: What is asked of the rows of a side before they are joined, by alias.
        name: What dead letters call the chain.
    """

    def __init__(
        self,
        tables: Tables,
        topics: Mapping[str, TableTopic],
        kept: Mapping[str, frozenset[str]],
        asked: Mapping[str, tuple[str, ...]],
        name: str,
    ) -> None:
        self.letters: list[DeadLetter] = []
        self.counters: Counter[str] = Counter()
        self.evaluator = Evaluator({a: topics[topic].types() for a, topic in tables.sources})
        self._tables, self._topics, self._name = tables, topics, name
        self._kept, self._asked = kept, asked
        self._key = tables.key(topics)
        self._rows: dict[str, dict[Key, Kept]] = {alias: {} for alias, _ in tables.sources}
        self._joined: dict[Key, Joined] = {}
        self._numbers = count()
        self._failed: set[Key] = set()
        self._at = 0

    def take(self, record: Record) -> list[Change]:
        """Take a record of any topic; return what it changes of the joined rows."""
        aliases = [alias for alias, topic in self._tables.sources if topic == record.topic]
        if not aliases:
            return []
        classes = {self._take(alias, record) for alias in aliases}
        self._count(record, classes)
        return self._settle()

    def refuse(self, record: Record) -> None:
        """Count a record that cannot be decoded."""
        if record.topic in {topic for _, topic in self._tables.sources}:
            self.counters.update(read=1, dead_letter=1)

    def expire(self, watermark: int | None) -> Iterator[list[Change]]:
        """Delete rows that nothing changed for too long, one after the other."""
        due = sorted(
            (row.ts + retain, alias, key)
            for alias, topic in self._tables.sources
            if (retain := self._topics[topic].retain) is not None
            for key, row in self._rows[alias].items()
            if watermark is not None and watermark > row.ts + retain
        )
        for _, alias, key in due:
            self._delete(alias, key, self._rows[alias][key].ts)
            yield self._settle()

    def is_due(self, watermark: int) -> bool:
        """Tell whether the next batch deletes something."""
        return any(
            watermark > row.ts + (self._topics[topic].retain or watermark)
            for alias, topic in self._tables.sources
            for row in self._rows[alias].values()
        )

    def fail(self, phase: str, key: Key | None = None) -> None:
        """Note that a row fails, which is no record; the row of a key once for each change."""
        if key is None or key not in self._failed:
            place = self._tables.sources[0][1], 0, -1
            self.letters.append(DeadLetter(*place, phase, self._name))
        if key is not None:
            self._failed.add(key)

    def _count(self, record: Record, classes: set[str]) -> None:
        found = next(each for each in FATES if each in classes)
        self.counters.update(["read", found])
        self.counters["skipped"] += found == "null_key"
        if "dead_letter" in classes:
            place = record.topic, record.partition, record.offset
            self.letters.append(DeadLetter(*place, "sql", self._name))

    def _take(self, alias: str, record: Record) -> str:
        topic, rows = self._topics[record.topic], self._rows[alias]
        key = _key_of(topic, record)
        if key is None:
            named = record.value is not None or len(topic.key) == 1
            return "null_key" if named else "skipped"
        before = rows.get(key)
        if record.value is None or operation_of(topic, record) == "delete":
            self._delete(alias, key, record.ts)
            return "used"
        values = {KAFKA_KEY: record.key, **record.value}
        try:
            passed = self.evaluator.passes({alias: values}, self._asked.get(alias, ()))
        except RowFails:
            self._delete(alias, key, record.ts)
            return "dead_letter"
        if not passed:
            self._delete(alias, key, record.ts)
            return "filtered"
        kept = {name: values.get(name) for name in self._kept[alias]}
        ts = max(record.ts, before.ts if before else record.ts)
        same = before is not None and before.values == kept
        rows[key] = Kept(values=kept, ts=ts, changed=before.changed if before and same else ts)
        self._at = max(ts, self._at)
        return "used"

    def _delete(self, alias: str, key: Key, ts: int) -> None:
        before = self._rows[alias].pop(key, None)
        self._at = max(ts, self._at, before.ts if before else ts)

    def _settle(self) -> list[Change]:
        """Join the tables as they are now, and return what differs from before."""
        self._failed.clear()
        ts, self._at = self._at, 0
        before, now = self._joined, self._join()
        changes: list[Change] = []
        for key in {**before, **now}:
            old, new = before.get(key), now.get(key)
            if old is not None and new is not None:
                same = old.row == new.row
                new = replace(new, ts=max(old.ts, new.ts), formed=(old if same else new).formed)
                now[key] = new
                if same:
                    continue
            at = new.ts if new else max(ts, old.ts if old else ts)
            changes.append(Change(key=key, old=old, new=new, ts=at))
        self._joined = now
        return changes

    def _join(self) -> dict[Key, Joined]:
        first = self._tables.sources[0][0]
        rows: list[dict[str, Kept | None]] = [{first: row} for row in self._rows[first].values()]
        for join in self._tables.joins:
            rows = self._joined_to(rows, join)
        found: dict[Key, Joined] = {}
        for row in rows:
            values = {alias: part and part.values for alias, part in row.items()}
            key = tuple(_first(values, part.columns) for part in self._key)
            assert key not in found, "two rows with one key"
            ts = max(part.changed for part in row.values() if part)
            found[key] = Joined(row=values, ts=ts, formed=next(self._numbers))
        return found

    def _joined_to(
        self, rows: Sequence[dict[str, Kept | None]], join: TableJoin
    ) -> list[dict[str, Kept | None]]:
        befores, owns = [sql for sql, _ in join.on], [sql for _, sql in join.on]
        right = list(self._rows[join.alias].values())
        keys = [self._evaluate({join.alias: row}, owns) for row in right]
        met = [False] * len(right)
        made: list[dict[str, Kept | None]] = []
        for row in rows:
            key = self._evaluate(row, befores)
            matches = [place for place, own in enumerate(keys) if key == own and None not in key]
            made += [{**row, join.alias: right[place]} for place in matches]
            for place in matches:
                met[place] = True
            if not matches and join.keeps_left:
                made.append({**row, join.alias: None})
        if join.keeps_right:
            missing = self._before(join)
            made += [
                {**dict.fromkeys(missing), join.alias: row}
                for row, known in zip(right, met, strict=True)
                if not known
            ]
        return made

    def _before(self, join: TableJoin) -> list[str]:
        aliases = [alias for alias, _ in self._tables.sources]
        return aliases[: aliases.index(join.alias)]

    def _evaluate(self, row: Mapping[str, Kept | None], sql: Sequence[str]) -> tuple[Any, ...]:
        return self.evaluator.of_row({a: part and part.values for a, part in row.items()}, sql)


def _first(values: Row, part: Sequence[tuple[str, str]]) -> object:
    found = (side[column] for alias, column in part if (side := values.get(alias)) is not None)
    return next((value for value in found if value is not None), None)


def _key_of(topic: TableTopic, record: Record) -> Key | None:
    """Return the key of a record; None where it has none, or one is NULL."""
    if not topic.primary_key:
        return None if record.key is None else (record.key,)
    if record.value is not None:
        key = tuple(record.value.get(name) for name in topic.primary_key)
        return None if None in key else key
    name, *others = topic.primary_key
    if others or record.key is None:
        return None
    try:
        return (as_type(record.key, topic.columns[name]),)
    except RowFails:
        return None


def operation_of(topic: TableTopic, record: Record) -> Literal["put", "delete", "bad"]:
    """Return what a record does to the row of its key."""
    if record.value is None:
        return "delete"
    if topic.operation is None:
        return "put"
    kind, _, name = topic.operation.partition(":")
    said = (record.headers if kind == "header" else record.value).get(name)
    if said == "d":
        return "delete"
    return "put" if said in (None, "c", "r", "i", "u") else "bad"
