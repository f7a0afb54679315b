"""Windows that have ended: their rows leave, and they stay for late rows until they are closed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.aggregate.calculate import keeps_rows, result_columns
from kaflow_engine.operators.aggregate.closing.late import LateRows
from kaflow_engine.operators.aggregate.closing.over import (
    OverGroups,
    over_groups,
    places_over,
    results_of,
)
from kaflow_engine.operators.aggregate.closing.stored import rows_at_once
from kaflow_engine.operators.aggregate.entries import (
    Group,
    GroupValues,
    group_values,
    over_at,
    overs_at,
)
from kaflow_engine.operators.aggregate.groups import Over
from kaflow_engine.operators.aggregate.leave import result_letters
from kaflow_engine.operators.aggregate.workspace import Work
from kaflow_engine.operators.handover import Changes, HandChanges, placed
from kaflow_engine.operators.row_errors.bad_record import BadRecord


def leave(
    work: Work, ended: Sequence[Over], late: LateRows, hand_changes: HandChanges
) -> list[pa.Table]:
    """Send the rows of windows that have ended, and keep the windows.

    Where only one change of a batch leaves, a window that late records change too sends that one.

    Args:
        work: The aggregate.
        ended: The windows, which are forgotten.
        late: The records of the batch that come to them.
        hand_changes: Takes the rows.

    Returns:
        Rows and dead letters, schema EXCHANGE.
    """
    if not ended:
        return []
    kept = work.groups.rows([e for e, _, _ in ended]) if keeps_rows(work.aggregate) else {}
    over, nodes = over_groups(work, ended)
    made, failed = results_of(work, nodes, kept)
    waiting = [
        not work.aggregate.each
        and _stays(work, group, node.start)
        and late.change(node.entry, node.key, node.start, group)
        for node, (_, group, _) in zip(nodes, ended, strict=True)
    ]
    numbers = [number for number in made.rows if not waiting[number]]
    leaving = {
        "rn": pa.array(numbers, pa.int64()),
        "group": pa.array([nodes[number].entry for number in numbers], pa.binary()),
        "new": pa.array([made.rows[number] for number in numbers], pa.string()),
    }
    found, refused = _handed(work, over, leaving, hand_changes)
    bad = [*(one for one in failed if not waiting[one.row]), *refused]
    unsent = {one.row for one in bad}
    for number, (entry, group, _) in enumerate(ended):
        late_or_bad = waiting[number] or number in unsent
        work.groups.put(entry, replace(group, held=False, unsent=late_or_bad), known=False)
    return [*found, *_letters(work, over, bad)]


def _stays(work: Work, group: Group, start: int | None) -> bool:
    """Tell whether a window is not closed in the batch in which it has ended."""
    over = over_at(work.aggregate, replace(group, held=False), start)
    return over is not None and over >= work.watermark


def leave_at_once(
    work: Work,
    entries: pa.BinaryArray,
    over: OverGroups,
    stored: GroupValues,
    hand_changes: HandChanges,
) -> list[pa.Table]:
    """Send the rows of windows that have ended, and forget those that are closed.

    Args:
        work: The aggregate.
        entries: The keys of entries, which no record of the batch changes.
        over: The windows.
        stored: What is kept of them.
        hand_changes: Takes the rows.

    Raises:
        DATA_ERRORS: Some results fail, and nothing has happened.
    """
    results = rows_at_once(work, over, stored.columns).filter(pa.array(stored.held))
    numbers = results["rn"]
    leaving = {"rn": numbers, "group": entries.take(numbers), "new": results["row"]}
    later = overs_at(work.aggregate, stored.ts, over.ends)
    stay = stored.held & (later >= work.watermark)
    staying = pa.array(stay)
    found, bad = _handed(work, over, leaving, hand_changes)
    values = group_values(stored.ts[stay], stored.columns.filter(staying))
    work.groups.put_until(entries.filter(staying), values, later[stay])
    work.groups.forget(entries.filter(pc.invert(staying)))
    for place in (one.row for one in bad if stay[one.row]):
        columns: str = stored.columns[place].as_py()
        group = Group(ts=int(stored.ts[place]), last=0, columns=columns, unsent=True)
        work.groups.put(entries[place].as_py(), group, known=True)
    return [*found, *_letters(work, over, bad)]


def _handed(
    work: Work,
    over: OverGroups,
    leaving: Mapping[str, pa.Array | pa.ChunkedArray],
    hand_changes: HandChanges,
) -> tuple[list[pa.Table], Sequence[BadRecord]]:
    """Hand on rows that leave for the first time; returns those on which the SQL behind fails."""
    count = len(leaving["rn"])
    if not count:
        return [], ()
    known = places_over(work, over)
    nothing = pa.nulls(count, pa.string())
    changes = Changes(
        rows=pa.table({**leaving, "old": nothing}).select(["rn", "group", "old", "new"]),
        columns=result_columns(work.aggregate),
        placed=lambda found: placed(found, known),
        stays=True,
    )
    taken = hand_changes(changes)
    return [taken.rows], taken.bad


def _letters(work: Work, over: OverGroups, bad: Sequence[BadRecord]) -> list[pa.Table]:
    return [result_letters(work, [(over.change(b.row), b) for b in bad])] if bad else []
