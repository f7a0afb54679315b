"""Runs of rows: cut from the records in their order, one after the other, each given to DuckDB."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from tests.reference.records import Batch, Record

Row = Mapping[str, object]


@dataclass(slots=True)
class _Waiting:
    """Rows of a run that is not full."""

    since: int
    """Batch time of the first one."""
    rows: list[Record] = field(default_factory=list[Record])


@dataclass(kw_only=True)
class Runs:
    """Runs over the good records of one topic.

    A run that is due when a batch begins has the rows of the batches before; then come the records.
    """

    size: int
    every: int | None
    """Milliseconds of batch time."""
    per_partition: bool
    columns: Mapping[str, str]
    sql: str
    """Over `batch`."""
    dead: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Partition and offset of records on which the SQL fails alone."""
    broken: int = 0
    """Runs that fail although no record of theirs does alone."""
    _waiting: dict[int, _Waiting] = field(default_factory=dict[int, _Waiting])
    _latest: dict[int, int] = field(default_factory=dict[int, int])

    def run(self, batch: Batch) -> dict[int, list[Row]]:
        """Take one batch; returns what leaves, by source partition, or all under 0."""
        found: list[tuple[int, list[Record]]] = []
        for key, waits in list(self._waiting.items()):
            if batch.last or (self.every is not None and batch.time >= waits.since + self.every):
                found.append((key, self._waiting.pop(key).rows))
        for record in self._in_order(batch.records):
            key = record.partition if self.per_partition else 0
            waits = self._waiting.setdefault(key, _Waiting(batch.time))
            waits.rows.append(record)
            if len(waits.rows) == self.size:
                found.append((key, self._waiting.pop(key).rows))
        made: dict[int, list[Row]] = {}
        for key, rows in found:
            made.setdefault(key, []).extend(self._made(rows))
        return made

    def _in_order(self, records: Sequence[Record]) -> list[Record]:
        placed: list[tuple[int, int, int, Record]] = []
        latest = self._latest
        for record in sorted(records, key=lambda each: (each.partition, each.offset)):
            part = record.partition
            latest[part] = max(record.ts, latest.get(part, record.ts))
            placed.append((latest[part], part, record.offset, record))
        # Positions of different batches compare by batch first.
        self._latest = {}
        return [each[3] for each in sorted(placed, key=lambda each: each[:3])]

    def _made(self, rows: list[Record]) -> list[Row]:
        whole = self._asked(rows)
        if whole is not None:
            return whole
        bad = [row for row in rows if self._asked([row]) is None]
        self.dead += [(row.partition, row.offset) for row in bad]
        left = [row for row in rows if row not in bad]
        if not bad or not left:
            self.broken += not bad
            return []
        again = self._asked(left)
        self.broken += again is None
        return again or []

    def _asked(self, rows: list[Record]) -> list[Row] | None:
        """Ask DuckDB; None where the SQL fails."""
        with duckdb.connect(config={"threads": 1}) as connection:
            columns = ", ".join(f'"{name}" {kind}' for name, kind in self.columns.items())
            connection.execute(f"CREATE TABLE batch ({columns})")
            for row in rows:
                assert row.value is not None
                values: list[Any] = [row.value.get(name) for name in self.columns]
                places = ", ".join("?" * len(values))
                connection.execute(f"INSERT INTO batch VALUES ({places})", values)
            try:
                found = connection.sql(f"SELECT to_json(r) FROM ({self.sql}\n) r").fetchall()
            except (duckdb.DataError, duckdb.InvalidInputException):
                return None
        return [json.loads(row) for (row,) in found]
