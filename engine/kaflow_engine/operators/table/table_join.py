"""One join of two tables in one task: what changes on one side re-forms the rows it touches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.tables import TableJoin
from kaflow_engine.formats.pick import keep, pick
from kaflow_engine.operators.handover import HandChanges
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.row_order import causes_of, in_order
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.table.joined_rows import called, changed
from kaflow_engine.operators.table.leave import made_by, send_changes
from kaflow_engine.operators.table.side_rows import (
    Meeting,
    Place,
    SideRow,
    read_meetings,
    write_row,
)

_Place = tuple[Place, bytes]
"""Where rows meet, and what tells a joined row apart there."""


class _Row(NamedTuple):
    """A row of one side as it arrives."""

    cause: int
    place: Place
    side: int
    identity: bytes
    row: SideRow | None
    """None: it is gone."""
    ts: int


@dataclass(slots=True, kw_only=True)
class _Found:
    """Changes of joined rows, in their order."""

    kept: list[bytes] = field(default_factory=list[bytes])
    """The keys of the places where they are."""
    group: list[bytes] = field(default_factory=list[bytes])
    old: list[str | None] = field(default_factory=list[str | None])
    new: list[str | None] = field(default_factory=list[str | None])
    ts: list[int] = field(default_factory=list[int])
    by: list[int] = field(default_factory=list[int])
    """The rows that made them."""

    def table(self) -> pa.Table:
        """Return them as `made_by` takes them."""
        return pa.table(
            {
                "kept": pa.array(self.kept, pa.binary()),
                "group": pa.array(self.group, pa.binary()),
                "old": pa.array(self.old, pa.string()),
                "new": pa.array(self.new, pa.string()),
                "ts": pa.array(self.ts, pa.int64()),
                "by": pa.array(self.by, pa.int64()),
            }
        )


def run_table_join(
    flow: Flow,
    join: TableJoin,
    batch: BatchContext,
    rows: pa.Table,
    task: Task,
    hand_changes: HandChanges,
) -> pa.Table:
    """Run a join of tables over the rows of one task.

    Args:
        flow: What runs.
        join: Which operator of it.
        batch: Which batch.
        rows: Schema EXCHANGE; rows for others pass through untouched.
        task: The state before the batch; takes the changes.
        hand_changes: Takes the changes of joined rows.

    Returns:
        Schema EXCHANGE.
    """
    mine = pc.equal(rows["target"], target_of(flow, join))
    others = rows.filter(pc.invert(mine))
    here = in_order(keep(rows, mine))
    if not here.num_rows:
        return others
    state = StepState(task, join.state, flow.partitions)
    given, order = _given(here)
    meetings = read_meetings(join, state, _touched(given))
    found = _changes(join, given, order, meetings)
    for place, side, identity in dict.fromkeys((r.place, r.side, r.identity) for r in given):
        write_row(state, place, side, identity, meetings[place].rows[side].get(identity))
    state.write()
    columns = (*join.left.columns, *join.right.columns)
    changes = made_by(found.table(), here)
    sent = send_changes(flow, join, columns, [changes], hand_changes, partial(called, join))
    return pa.concat_tables([others, *sent])


def _given(rows: pa.Table) -> tuple[list[_Row], list[int]]:
    """Return the rows, those that are gone first among those of one cause, and their places."""
    causes = causes_of(rows)
    order = np.lexsort((rows["payload"].is_valid().to_numpy(), causes))
    sorted_rows = pick(rows, pa.array(order))
    names = ("key", "side", "value", "payload", "ts", "doomed")
    columns: zip[tuple[int, bytes, int, bytes, str | None, int, bool]] = zip(
        causes[order].tolist(), *(sorted_rows[name].to_pylist() for name in names), strict=True
    )
    given = [
        _Row(
            cause,
            Place(key, side if alone else None),
            side,
            identity,
            None if packed is None else SideRow(packed, ts),
            ts,
        )
        for cause, key, side, identity, packed, ts, alone in columns
    ]
    return given, order.tolist()


def _touched(given: Sequence[_Row]) -> dict[Place, tuple[set[bytes], set[bytes]]]:
    found: dict[Place, tuple[set[bytes], set[bytes]]] = {}
    for each in given:
        mine = found.get(each.place)
        if mine is None:
            mine = found[each.place] = (set(), set())
        mine[each.side].add(each.identity)
    return found


def _changes(
    join: TableJoin,
    given: Sequence[_Row],
    order: Sequence[int],
    meetings: Mapping[Place, Meeting],
) -> _Found:
    """Take rows into their places; returns the changes of joined rows that each cause makes."""
    found = _Found()
    for _, some in groupby(range(len(given)), lambda n: given[n].cause):
        made: dict[_Place, tuple[SideRow | None, SideRow | None]] = {}
        latest = by = -(1 << 63)
        for number in some:
            each = given[number]
            latest, by = max(latest, each.ts), max(by, order[number])
            place = each.place
            meeting = meetings[place]
            for group, old, new in changed(
                join, place, meeting, each.side, each.identity, each.row
            ):
                before = made.get((place, group))
                made[place, group] = (old if before is None else before[0], new)
        # deleted in one place before it comes to another
        for (place, group), (old, new) in sorted(made.items(), key=_by_group):
            before, now = old and old.packed, new and new.packed
            if before == now:
                continue
            found.kept.append(place.key)
            found.group.append(group)
            found.old.append(before)
            found.new.append(now)
            found.ts.append(max(latest, old.ts if old else latest) if new is None else new.ts)
            found.by.append(by)
    return found


def _by_group(made: tuple[_Place, tuple[SideRow | None, SideRow | None]]) -> tuple[bytes, bool]:
    (_, group), (_, new) = made
    return group, new is not None
