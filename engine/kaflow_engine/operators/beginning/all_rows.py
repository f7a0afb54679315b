"""All rows of a table as they were before a batch, in parts of a bounded size."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

import pyarrow as pa

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.operators import Aggregate, MakesChanges
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.operators.aggregate.entries import GROUP
from kaflow_engine.operators.aggregate.present import present_rows
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.partitioning import shards_of
from kaflow_engine.operators.rows.task import Task
from kaflow_engine.operators.table.joined_rows import changed
from kaflow_engine.operators.table.kept_rows import ROW, read_rows
from kaflow_engine.operators.table.side_rows import ALONE, LEFT, RIGHT, Meeting, Place, side_row
from kaflow_engine.state.keys import split_entry

_AT_ONCE = 20_000
"""Most entries that are read together."""

_Entries = Iterator[tuple[list[bytes], list[bytes]]]


@dataclass(slots=True, kw_only=True)
class TableRows:
    """Some rows of a table."""

    kept: list[bytes] = field(default_factory=list[bytes])
    """The keys, behind their shard byte, under which they are kept."""
    group: list[bytes] = field(default_factory=list[bytes])
    """What tells them apart."""
    packed: list[str] = field(default_factory=list[str])
    ts: list[int] = field(default_factory=list[int])

    def add(self, kept: bytes, group: bytes, packed: str, ts: int) -> None:
        """Add a row."""
        self.kept.append(kept)
        self.group.append(group)
        self.packed.append(packed)
        self.ts.append(ts)


def all_rows(flow: Flow, table: MakesChanges, task: Task) -> Iterator[TableRows]:
    """Yield the rows of a table that are in the state partitions of a task."""
    match table:
        case Materialize():
            for keys, values in _entries(flow, table.state, ROW, task):
                ts, packed = read_rows(pa.array(values, pa.binary()))
                kept = [split_entry(key)[0] for key in keys]
                yield TableRows(kept=kept, group=kept, packed=packed.to_pylist(), ts=ts.tolist())
        case Aggregate():
            state = StepState(task, table.state, flow.partitions)
            for keys, values in _entries(flow, table.state, GROUP, task):
                found = TableRows()
                for entry, key, packed, ts in present_rows(table, state, keys, values):
                    found.add(key, entry, packed, ts)
                yield found
        case TableJoin():
            for part in task.partitions:
                for shard in shards_of(part, flow.partitions):
                    yield _joined(table, task, part, shard)
        case _:
            assert_never(table)


def _entries(flow: Flow, state: int, side: int, task: Task) -> _Entries:
    """Yield keys and values of all entries of a side byte."""
    for part in task.partitions:
        for shard in shards_of(part, flow.partitions):
            yield from _of_shard(task, state, part, shard, side)


def _of_shard(task: Task, state: int, part: int, shard: int, side: int) -> _Entries:
    start, stop = bytes((shard, side)), bytes((shard, side + 1))
    while True:
        found = task.state(state, part).range(start, stop, _AT_ONCE)
        if found.keys:
            yield found.keys, found.values
        if len(found.keys) < _AT_ONCE:
            return
        start = found.keys[-1] + b"\0"


def _joined(join: TableJoin, task: Task, part: int, shard: int) -> TableRows:
    """Return the joined rows of one shard: those of each place as they meet there."""
    met: dict[Place, Meeting] = defaultdict(Meeting)
    made: dict[tuple[bytes, bytes], tuple[str, int] | None] = {}
    for side in (LEFT, RIGHT):
        for alone in (False, True):
            byte = side + ALONE * alone
            for keys, values in _of_shard(task, join.state, part, shard, byte):
                for entry, value in zip(keys, values, strict=True):
                    key, _, identity = split_entry(entry)
                    place = Place(key, side if alone else None)
                    row = side_row(value)
                    for group, _, new in changed(join, place, met[place], side, identity, row):
                        made[key, group] = None if new is None else (new.packed, new.ts)
    found = TableRows()
    for (key, group), row in made.items():
        if row is not None:
            found.add(key, group, *row)
    return found
