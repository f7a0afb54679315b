"""Groups that are over: they are forgotten, and those that are final leave."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.operators.aggregate.calculate import keeps_rows, result_columns
from kaflow_engine.operators.aggregate.closing.ended import leave, leave_at_once
from kaflow_engine.operators.aggregate.closing.late import LateRows
from kaflow_engine.operators.aggregate.closing.over import (
    OverGroups,
    over_groups,
    places_over,
    results_of,
)
from kaflow_engine.operators.aggregate.closing.stored import final_rows
from kaflow_engine.operators.aggregate.entries import overs_at, read_entries, read_group_values
from kaflow_engine.operators.aggregate.groups import Over
from kaflow_engine.operators.aggregate.leave import append_rows, result_letters
from kaflow_engine.operators.aggregate.windows import ends_of
from kaflow_engine.operators.aggregate.workspace import Work
from kaflow_engine.operators.handover import Changes, HandChanges, HandOn, Leaving, placed
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS
from kaflow_engine.operators.watermark import END


def close(work: Work, late: LateRows, hand_on: HandOn, hand_changes: HandChanges) -> list[pa.Table]:
    """Forget the groups that are over, and send those that are final; schema EXCHANGE.

    Where changes of windows are held back, those who hold them hear that a window is closed; those
    who read groups as a table hear that one is forgotten. The end of a bounded run is not a time at
    which groups without a window are.

    Args:
        work: The aggregate.
        late: Records of the batch that come to windows which have ended.
        hand_on: Takes append rows.
        hand_changes: Takes changes.
    """
    if work.aggregate.window is None and work.watermark >= END:
        return []
    hands = (hand_on, hand_changes)
    found = _over(work, work.groups.over_already(work.watermark), late, *hands)
    looks = work.batch.may_be_due(work.chain.number)
    one_by_one: list[pa.BinaryArray] = []
    for each in work.groups.due(work.watermark) if looks else ():
        due, changed = late.apart(each)
        one_by_one += changed
        at_once = _close_at_once(work, due, *hands) if len(due) else []
        if at_once is None:
            at_once = _over(work, work.groups.over(due, work.watermark), late, *hands)
        found += at_once
    if one_by_one:
        over = work.groups.over(pa.concat_arrays(one_by_one), work.watermark)
        found += _over(work, over, late, *hands)
    return found


def _over(
    work: Work, over: Sequence[Over], late: LateRows, hand_on: HandOn, hand_changes: HandChanges
) -> list[pa.Table]:
    """Send windows that have ended, and close those that are closed, some of them at once."""
    ended = [each for each in over if each[1].held]
    found = leave(work, ended, late, hand_changes)
    closed = [each for each in over if not each[1].held]
    if ended:
        closed += work.groups.over_already(work.watermark)
    return found + _closed(work, closed, hand_on, hand_changes)


def _closed(
    work: Work, over: Sequence[Over], hand_on: HandOn, hand_changes: HandChanges
) -> list[pa.Table]:
    """Send groups that are over, where they are final, and forget them; where windows are retained,
    those that were closed before are forgotten. The end of a bounded run forgets no row."""
    stays = work.retains and work.watermark < END
    fresh = [each for each in over if not each[1].closed]
    gone = [each for each in over if each[1].closed]
    found = _sent_last(work, fresh, stays, hand_on, hand_changes) if fresh else []
    if stays and fresh:
        for entry, group, _ in fresh:
            work.groups.put(entry, replace(group, closed=True), known=False)
        gone += work.groups.over_already(work.watermark)
    if gone:
        kept = _kept_of(work, gone, drop=True)
        found += _told(work, gone, kept, hand_changes, "forgotten") if stays else []
    return found


def _kept_of(work: Work, over: Sequence[Over], *, drop: bool) -> dict[bytes, dict[bytes, str]]:
    """Return the rows that are kept of groups, which lets go of them where that is asked for."""
    if not keeps_rows(work.aggregate):
        return {}
    kept = work.groups.rows([entry for entry, _, _ in over])
    for entry, rows in kept.items():
        for tail in rows if drop else ():
            work.groups.keep(entry, tail, None)
    return kept


def _sent_last(
    work: Work, over: Sequence[Over], stays: bool, hand_on: HandOn, hand_changes: HandChanges
) -> list[pa.Table]:
    """Send what groups send when they are over."""
    kept = _kept_of(work, over, drop=not stays)
    if work.tells_closing:
        because = "forgotten" if work.aggregate.window is None else "closed"
        return _told(work, over, kept, hand_changes, because)
    if work.aggregate.leaves != "closed":
        return []
    gone, nodes = over_groups(work, over)
    made, bad = results_of(work, nodes, kept)
    rows = pa.table(
        {
            "rn": pa.array(list(made.rows), pa.int64()),
            "row": pa.array(list(made.rows.values()), pa.string()),
        }
    )
    return _sent(work, gone, append_rows(work, rows, places_over(work, gone)), bad, hand_on)


def _told(
    work: Work,
    over: Sequence[Over],
    kept: dict[bytes, dict[bytes, str]],
    hand_changes: HandChanges,
    because: Literal["closed", "forgotten"],
) -> list[pa.Table]:
    """Tell who holds changes back that windows are closed, or who reads groups that they are
    forgotten, with the row that each sent last."""
    gone, nodes = over_groups(work, over)
    made, _ = results_of(work, nodes, kept)
    sent = [g.sent if g.unsent else made.rows.get(n) for n, (_, g, _) in enumerate(over)]
    row = pa.array(sent, pa.string())
    new = pa.nulls(len(row), pa.string()) if because == "forgotten" else row
    entries = pa.array([entry for entry, _, _ in over], pa.binary())
    rows = {"rn": pa.array(np.arange(len(sent))), "group": entries}
    there = pa.table({**rows, "old": row, "new": new}).filter(row.is_valid())
    if not there.num_rows:
        return []
    known = places_over(work, gone)
    changes = Changes(
        rows=there,
        columns=result_columns(work.aggregate),
        placed=lambda found: placed(found, known),
        stays=False,
        because=because,
    )
    return [hand_changes(changes).rows]


def _close_at_once(
    work: Work, entries: pa.BinaryArray, hand_on: HandOn, hand_changes: HandChanges
) -> list[pa.Table] | None:
    """Forget the groups that are due, and send them, without a look at each of them.

    None: they must be looked at, and nothing has happened. Some of them are not over, are kept with
    their rows, or are sent as changes and have a result that fails.
    """
    aggregate, groups = work.aggregate, work.groups
    remembers = work.tells_closing or work.retains
    if isinstance(aggregate.window, SessionWindow) or keeps_rows(aggregate) or remembers:
        return None
    if not groups.is_untouched or len(pc.unique(entries)) < len(entries):
        return None
    values = groups.values(entries)
    stored = None if values.null_count else read_group_values(values)
    if stored is None:
        return None
    groupings, starts = read_entries(aggregate, entries)
    ends = starts if aggregate.window is None else ends_of(aggregate.window, starts)
    over = overs_at(aggregate, stored.ts, ends, stored.held)
    if len(over) < len(entries) or over.max() >= work.watermark:
        return None
    gone = OverGroups(keys=groupings, starts=starts, ends=ends, ts=stored.ts, over=over)
    if aggregate.leaves in ("changes", "first"):
        groups.forget(entries)
        return []
    if aggregate.leaves == "ended":
        try:
            return leave_at_once(work, entries, gone, stored, hand_changes)
        except DATA_ERRORS:
            return None
    groups.forget(entries)
    leaving = final_rows(work, gone, stored.columns, places_over(work, gone))
    return _sent(work, gone, leaving, [], hand_on)


def _sent(
    work: Work, gone: OverGroups, leaving: Leaving, bad: list[BadRecord], hand_on: HandOn
) -> list[pa.Table]:
    tables: list[pa.Table] = []
    if leaving.rows.num_rows:
        taken = hand_on(leaving)
        tables.append(taken.rows)
        bad = [*bad, *taken.bad]
    if bad:
        tables.append(result_letters(work, [(gone.change(b.row), b) for b in bad]))
    return tables
