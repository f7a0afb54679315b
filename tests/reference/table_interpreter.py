"""The reference interpreter of pipelines over tables, record at a time.

Where the contract is silent or loose, it follows these rules.

- A source keeps the columns that some query over the same tables reads; others are no change.
- Conditions that all queries over the same tables have, and that read one side which no join makes
  up for, are asked of records: one that does not pass deletes the row and is `filtered`, one on
  which they fail is a dead letter. Others are asked of joined rows, whose dead letters are of rows.
- What leaves under `batch` is computed at the end of the batch alone.
- The `ts` of a joined row is the greater one of its parts, but not less than that of the row
  before it under its key; of a delete that of the record that deletes, but not less either.
- A row on which an output fails is not in that output alone; where several outputs fail on one
  change, that is one dead letter.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp, parse_one

from tests.reference.records import Batch, BatchResult, DeadLetter, Emitted, Record
from tests.reference.table_outputs import GroupsOut, RowsOut
from tests.reference.table_query import Part, Tables, TableTopic, TableWrite
from tests.reference.tables import Change, OneTables, operation_of

COUNTED = ("read", "used", "dead_letter", "filtered", "skipped", "null_key")


class TableOracle:
    """Runs one pipeline whose topics are all tables, batch after batch."""

    def __init__(self, writes: tuple[TableWrite, ...], topics: Mapping[str, TableTopic]) -> None:
        self._chains: list[tuple[OneTables, list[RowsOut | GroupsOut]]] = []
        shared = dict.fromkeys(write.tables for write in writes)
        for tables in shared:
            own = [write for write in writes if write.tables == tables]
            name = own[0].topic if len(shared) > 1 else ""
            early = _early(tables, own)
            one = OneTables(tables, topics, _kept(tables, own, topics, early), early, name)
            key = tables.key(topics)
            pushed = {sql for each in early.values() for sql in each}
            outs = [_out(_without(write, pushed), one, key) for write in own]
            self._chains.append((one, outs))
        self._topics = topics
        self._watermark: int | None = None
        self._time = 0

    def run(self, batch: Batch) -> BatchResult:
        """Take one batch: rows that were not changed for too long, then its records one by one."""
        rows: list[Emitted] = []
        dead: list[DeadLetter] = []
        mark = self._watermark
        for one, outs in self._chains:
            for changes in one.expire(mark):
                rows.extend(_taken(outs, changes))
        timed = [_timed(self._topics[r.topic], r, batch.time) for r in batch.records]
        for record, phase in _in_order(timed):
            for one, outs in self._chains:
                if phase is None:
                    rows.extend(_taken(outs, one.take(record)))
                else:
                    one.refuse(record)
            if phase is not None:
                dead.append(DeadLetter(record.topic, record.partition, record.offset, phase))
        for one, outs in self._chains:
            for out in outs:
                rows.extend(out.leave())
                if isinstance(out, GroupsOut):
                    out.end_batch()
            dead.extend(one.letters)
            one.letters.clear()
        self._time = max(batch.time, self._time)
        self._watermark = self._time
        return BatchResult(
            rows=tuple(rows),
            dead_letters=tuple(dead),
            counters=self._totals(),
            watermarks=tuple(mark for _ in self._chains),
        )

    @property
    def is_due(self) -> bool:
        """Tell whether the next batch deletes a row first."""
        mark = self._watermark
        return mark is not None and any(one.is_due(mark) for one, _ in self._chains)

    def _totals(self) -> dict[str, int]:
        found = sum((one.counters for one, _ in self._chains), Counter[str]())
        return {name: found[name] for name in COUNTED}


def _taken(outs: Iterable[RowsOut | GroupsOut], changes: list[Change]) -> list[Emitted]:
    rows: list[Emitted] = []
    for out in outs:
        out.take(changes)
        if out.write.each:
            rows.extend(out.leave())
    return rows


def _timed(topic: TableTopic, record: Record, now: int) -> tuple[Record, str | None]:
    """Return a record with its event time, and the phase in which it is bad."""
    if record.raw is not None:
        return record, "decode"
    if topic.event_time is not None and record.value is not None:
        ts = record.value.get(topic.event_time)
        if not isinstance(ts, int) or ts > now + topic.max_future:
            return record, "event_time"
        record = replace(record, ts=ts)
    return record, "decode" if operation_of(topic, record) == "bad" else None


def _in_order(
    records: Iterable[tuple[Record, str | None]],
) -> Iterator[tuple[Record, str | None]]:
    """Yield the records in the one order: a partition's time never goes back."""
    latest: dict[tuple[str, int], int] = {}
    placed: list[tuple[tuple[int, str, int, int], tuple[Record, str | None]]] = []
    for each in sorted(records, key=lambda r: (r[0].topic, r[0].partition, r[0].offset)):
        record, phase = each
        part = record.topic, record.partition
        if phase not in ("decode", "event_time"):
            latest[part] = max(record.ts, latest.get(part, record.ts))
        placed.append(((latest.get(part, record.ts), *part, record.offset), each))
    yield from (each for _, each in sorted(placed, key=lambda each: each[0]))


def _out(write: TableWrite, one: OneTables, key: tuple[Part, ...]):
    return RowsOut(write, one, key) if write.groups is None else GroupsOut(write, one)


def _without(write: TableWrite, pushed: set[str]) -> TableWrite:
    return replace(write, where=tuple(sql for sql in write.where if sql not in pushed))


def _early(tables: Tables, writes: list[TableWrite]) -> dict[str, tuple[str, ...]]:
    """Return the conditions that are asked of records, by alias."""
    found: dict[str, tuple[str, ...]] = {}
    preserved = tables.preserved()
    for sql in writes[0].where:
        aliases = {alias for alias, _ in columns_of(sql)}
        if len(aliases) == 1 and aliases <= preserved and all(sql in w.where for w in writes):
            (alias,) = aliases
            found[alias] = (*found.get(alias, ()), sql)
    return found


def _kept(
    tables: Tables,
    writes: list[TableWrite],
    topics: Mapping[str, TableTopic],
    early: Mapping[str, tuple[str, ...]],
) -> dict[str, frozenset[str]]:
    """Return the columns that are kept of each source: the key, and what is read of its rows."""
    pushed = {sql for each in early.values() for sql in each}
    read = [sql for join in tables.joins for pair in join.on for sql in pair]
    for write in writes:
        read += [sql for _, sql in write.select]
        read += [sql for sql in write.where if sql not in pushed]
        read += [*(write.groups or ()), *write.entry, *([write.having] if write.having else [])]
    uses = {use for sql in read for use in columns_of(sql)}
    return {
        alias: frozenset(topics[topic].key) | {name for each, name in uses if each == alias}
        for alias, topic in tables.sources
    }


def columns_of(sql: str) -> frozenset[tuple[str, str]]:
    """Return the (alias, column) pairs that SQL reads."""
    found = parse_one(sql, dialect="duckdb").find_all(exp.Column)
    return frozenset((column.table, column.name) for column in found)
