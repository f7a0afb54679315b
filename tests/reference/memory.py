"""The sides of all steps, as of the record that is being taken."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from tests.reference.chain import OracleChain
from tests.reference.conditions import Column, Values
from tests.reference.looked_up import Changes
from tests.reference.pipeline import Join, Step
from tests.reference.records import Fact
from tests.reference.sides import (
    DimensionSide,
    EventSide,
    Key,
    RowSide,
    TableRow,
    Version,
    expired,
)


class Found(NamedTuple):
    """A value of each dimension of a step, by alias."""

    values: Values
    places: dict[str, Key]
    """Where several rows have the join key, the own key of this one."""


class Memory:
    """Updates and answers lookups of every side."""

    def __init__(self, chain: OracleChain) -> None:
        self.counters: Counter[str] = Counter()
        self._chain = chain
        self._watermark: float | None = None
        self._events: dict[str, EventSide] = {}
        self._dimensions: dict[str, DimensionSide] = {}
        self._tables: dict[str, RowSide] = {}
        for join in chain.joins:
            topic = chain.topics[join.topic]
            if topic.finds_several(join):
                self._tables[join.alias] = RowSide()
            elif topic.dimension:
                self._dimensions[join.alias] = DimensionSide(topic)
            else:
                self._events[join.alias] = EventSide()

    def start_batch(self, watermark: float | None) -> None:
        """Fix the watermark for one batch."""
        self._watermark = watermark

    def update(self, fact: Fact, changes: Changes) -> dict[str, Key]:
        """Bring a record, and what it changes of tables, to every side that reads it; return its
        keys by alias."""
        touched: dict[str, Key] = {}
        for join in self._chain.sides_of(fact.record.topic):
            if join.alias in self._tables:
                touched.update(self._changed(join, changes))
                continue
            value = fact.record.value
            if value is None:
                self._bury(fact, join)
                continue
            key = tuple(term.of({join.alias: value}) for term in join.own)
            if None in key:
                self.counters["null_key"] += 1
                continue
            touched[join.alias] = key
            if join.alias in self._dimensions:
                self._dimensions[join.alias].add(key, Version(fact, value))
            elif not expired(fact.ts + self._chain.kept(join.topic), self._watermark):
                self._events[join.alias].add(key, fact)
        return touched

    def matches(self, step: Step, key: Key, driving: Fact) -> dict[str, list[Fact]]:
        """The stored records that a driving record pairs with, by alias of the event sides."""
        return {
            join.alias: [] if None in key else self._present(join, key, driving)
            for join in step.joins
            if join.alias in self._events
        }

    def _present(self, join: Join, key: Key, driving: Fact) -> list[Fact]:
        kept = self._chain.kept(join.topic)
        return [
            fact
            for fact in self._events[join.alias].present(key, kept, self._watermark)
            if self._chain.near(driving.ts, join.topic, fact.ts)
        ]

    def look_up(self, step: Step, key: Key, driving_ts: int, latest: int | None) -> Iterator[Found]:
        """Yield the dimension values of a step: once for each row that a table has."""
        known = {
            join.alias: None
            if None in key
            else self._dimensions[join.alias].value(key, driving_ts, self._watermark, latest)
            for join in step.joins
            if join.alias in self._dimensions
        }
        tables = [join.alias for join in step.joins if join.alias in self._tables]
        rows = [[] if None in key else self._tables[a].rows(key, latest) for a in tables]
        for each in product(*(some or [None] for some in rows)):
            met = dict(zip(tables, each, strict=True))
            yield Found(
                {**known, **{alias: row and row[1].value for alias, row in met.items()}},
                {alias: row[0] for alias, row in met.items() if row},
            )

    def _changed(self, join: Join, changes: Changes) -> Iterator[tuple[str, Key]]:
        """Bring changes of a table to its side; yield the join keys under which rows came."""
        for change in changes[join.alias, join.topic]:
            value = change.new and change.new.row[join.alias]
            if value is None or change.new is None:
                self._tables[join.alias].put(change.key, None)
                continue
            key = tuple(term.of({join.alias: value}) for term in join.own)
            shown = {name: value[name] for name in self._chain.shown_of(join) if name in value}
            row = TableRow(key=key, value=value, shown=shown, ts=change.new.ts)
            came = self._tables[join.alias].put(change.key, None if None in key else row)
            if came and None not in key:
                yield join.alias, key

    def _bury(self, fact: Fact, join: Join) -> None:
        """Delete the entry that a tombstone names by its Kafka key."""
        named = self._chain.topics[join.topic].key
        if len(join.own) > 1 or (named and join.own != (Column(join.alias, named),)):
            self.counters["tombstones_ignored"] += 1
        elif fact.record.key is None:
            self.counters["null_key"] += 1
        else:
            self._dimensions[join.alias].add((fact.record.key,), Version(fact, None))
