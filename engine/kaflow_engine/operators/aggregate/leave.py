"""Changes of groups, and groups that are over, on their way out; and what could not be sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.graph import entries_of, last_level, level_of, source_of, target_of
from kaflow_engine.flow.operators import Project
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.aggregate.calculate import result_columns, unpacked_rows
from kaflow_engine.operators.aggregate.called import change_called
from kaflow_engine.operators.aggregate.entries import read_group
from kaflow_engine.operators.aggregate.workspace import (
    Change,
    Changed,
    Work,
    joined,
    texts,
)
from kaflow_engine.operators.handover import Changes, HandChanges, Leaving, placed
from kaflow_engine.operators.output.row_letters import row_letters
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import letter_side, why
from kaflow_engine.operators.rows.layout import batch_time_column
from kaflow_engine.operators.rows.partitioning import first_parts, record_part
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.row_order import causes_of
from kaflow_engine.operators.rows.row_text import pack, unpack
from kaflow_engine.operators.rows.schemas import DEAD, LETTERS, ORIGIN, TRIGGER


def send_changes(work: Work, hand_changes: HandChanges) -> list[pa.Table]:
    """Hand on what groups have become, and note what could not be sent.

    Returns:
        Rows and dead letters, schema EXCHANGE.
    """
    if work.changed is not None:
        return _send_changed(work, work.changed, hand_changes)
    changes = _leaving(work)
    if not changes:
        return []
    handed = _handed(changes, work.sent)
    bad: dict[int, BadRecord] = {}
    found: list[pa.Table] = []
    if handed:
        taken = hand_changes(_changes(work, changes, handed))
        bad = {one.row: one for one in taken.bad}
        found.append(taken.rows)
    failures: dict[bytes, tuple[Change, BadRecord]] = {}
    for number, change in enumerate(changes):
        failed = bad.get(number) or _failure(change)
        if failed is not None:
            failures.setdefault(change.entry, (change, failed))
    if failures:
        _note(work, changes, {*handed}, {*bad}, failures.keys())
        found.append(result_letters(work, failures.values()))
    return found


def _leaving(work: Work) -> list[Change]:
    """Return the last change of each group, or the last one that each record made of it."""
    causes = causes_of(joined(work.rows)).tolist() if work.aggregate.each else None
    last = {
        (change.entry, None if causes is None else causes[change.by]): number
        for number, change in enumerate(work.changes)
    }
    return [work.changes[number] for number in sorted(last.values())]


def _handed(changes: Sequence[Change], sent: Mapping[bytes, str | None]) -> list[int]:
    """Return the places of changes with a result that is not the one before."""
    now = dict(sent)
    found: list[int] = []
    for number, change in enumerate(changes):
        if change.failed is None and change.row != now.get(change.entry):
            now[change.entry] = change.row
            found.append(number)
    return found


def _changes(work: Work, changes: Sequence[Change], handed: Sequence[int]) -> Changes:
    some = [changes[number] for number in handed]
    rows = pa.table(
        {
            "rn": pa.array(handed, pa.int64()),
            "group": pa.array([change.entry for change in some], pa.binary()),
            "old": pa.array([work.sent.get(change.entry) for change in some], pa.string()),
            "new": pa.array([change.row for change in some], pa.string()),
        }
    )
    by = pa.array([change.by for change in some], pa.int64())
    ts = pa.array([change.ts for change in some], pa.int64())
    keys = pa.array([change.key for change in some], pa.binary())
    return _made(work, rows, by, ts, keys)


def _made(work: Work, rows: pa.Table, by: pa.Array, ts: pa.Array, keys: pa.BinaryArray) -> Changes:
    """Return changes with where they come from: the rows that made them, as places."""
    known = places_of(work, rows["rn"], joined(work.rows).take(by), ts, keys)
    columns = result_columns(work.aggregate)
    return Changes(
        rows=rows, columns=columns, placed=lambda found: placed(found, known), stays=True
    )


def places_of(
    work: Work, numbers: pa.ChunkedArray, made: pa.Table, ts: pa.Array, keys: pa.BinaryArray
) -> pa.Table:
    """Return where rows of groups come from, by `rn`.

    Args:
        work: The aggregate.
        numbers: Their `rn`.
        made: Of each the row that made it, schema EXCHANGE.
        ts: Their event times.
        keys: Their grouping values behind the shard byte.
    """
    places: dict[str, Any] = {
        **{name: made[name] for name in (*TRIGGER, *ORIGIN, "members")},
        "ts": ts,
        "part": pa.array(first_parts(keys, work.flow.partitions)),
        "counted": pa.repeat(False, len(ts)),
        "forced": pa.repeat(False, len(ts)),
    }
    return pa.table({"rn": numbers, **places})


def append_rows(work: Work, rows: pa.Table, known: pa.Table) -> Leaving:
    """Return rows that groups send once.

    Args:
        work: The aggregate.
        rows: `rn`, and `row`: the columns of the result as a packed row.
        known: Where they come from, by `rn`.
    """
    columns = result_columns(work.aggregate)
    places = {column.name: f"l[{i}]" for i, column in enumerate(columns, 1)}

    def packed(wanted: Sequence[Column]) -> str:
        texts = pack(places[column.name] for column in wanted)
        return f"SELECT rn, {texts} AS payload FROM (SELECT rn, {unpack('row')} AS l FROM rows)"

    return Leaving(
        rows=rows,
        typed=unpacked_rows(work.aggregate, [batch_time_column(work.batch.batch_time)]),
        packed=packed,
        placed=lambda found: placed(found, known),
    )


def _send_changed(work: Work, changed: Changed, hand_changes: HandChanges) -> list[pa.Table]:
    """Hand on what groups have become at once, and note what could not be sent.

    Returns:
        Rows and dead letters, schema EXCHANGE.
    """
    differs = pc.fill_null(pc.not_equal(changed.old, changed.new), True)
    places = np.flatnonzero(differs)
    if not len(places):
        return []
    numbers = pa.array(places[np.argsort(changed.by[places], kind="stable")])
    rows = pa.table(
        {
            "rn": numbers,
            "group": changed.entries.take(numbers),
            "old": changed.old.take(numbers),
            "new": changed.new.take(numbers),
        }
    )
    by, ts = pa.array(changed.by).take(numbers), pa.array(changed.ts).take(numbers)
    taken = hand_changes(_made(work, rows, by, ts, changed.keys.take(numbers)))
    if not taken.bad:
        return [taken.rows]
    failed = [(_change_at(work, changed, one.row), one) for one in taken.bad]
    for change, one in failed:
        group = read_group(changed.values[one.row].as_py())
        kept = replace(group, unsent=True, sent=changed.old[one.row].as_py())
        work.groups.put(change.entry, kept, known=True)
    return [taken.rows, result_letters(work, failed)]


def _change_at(work: Work, changed: Changed, number: int) -> Change:
    windowed = work.aggregate.window is not None
    return Change(
        entry=changed.entries[number].as_py(),
        key=changed.keys[number].as_py(),
        start=int(changed.starts[number]) if windowed else None,
        end=int(changed.ends[number]) if windowed else None,
        ts=int(changed.ts[number]),
        by=int(changed.by[number]),
        row=changed.new[number].as_py(),
    )


def parts(work: Work, keys: Sequence[bytes]) -> pa.Array:
    """Return the partitions of groups, by their keys behind the shard byte."""
    return pa.array(first_parts(pa.array(keys, pa.binary()), work.flow.partitions))


def _failure(change: Change) -> BadRecord | None:
    if change.failed is None:
        return None
    error, message = change.failed
    return BadRecord(row=0, phase="result", error=error, message=message)


def _note(
    work: Work,
    changes: Sequence[Change],
    handed: set[int],
    bad: set[int],
    failing: Iterable[bytes],
) -> None:
    """Keep the rows that groups sent last, whose present results could not be sent."""
    wanted = {*failing}
    sent = {entry: work.sent.get(entry) for entry in wanted}
    last: dict[bytes, Change] = {}
    for number, change in enumerate(changes):
        if change.entry not in wanted:
            continue
        last[change.entry] = change
        if number in handed and number not in bad:
            sent[change.entry] = change.row
    entries = sorted(last)
    for entry, group in zip(entries, work.groups.of(entries), strict=True):
        change = last[entry]
        if group is not None and (change.failed is not None or change.row != sent[entry]):
            kept = replace(group, unsent=True, sent=sent[entry])
            work.groups.put(entry, kept, known=True)


def result_letters(work: Work, failed: Iterable[tuple[Change, BadRecord]]) -> pa.Table:
    """Return dead letters about results, schema EXCHANGE: they name a group instead of a record."""
    some = list(failed)
    work.counters["failed_results"] += len(some)
    return row_letters(
        work.flow,
        work.chain,
        [replace(bad, phase="result") for _, bad in some],
        [change_called(work.aggregate, change) for change, _ in some],
        ts=pa.array([change.ts for change, _ in some], pa.int64()),
        part=parts(work, [change.key for change, _ in some]),
    )


def late_letters(work: Work, rows: pa.Table) -> pa.Table:
    """Return dead letters of rows that fall into closed windows only, schema EXCHANGE."""
    entries = entries_of(work.flow, work.aggregate)
    return joined([_late_of(work, each, rows) for each in entries])


def _late_of(work: Work, entry: Project, rows: pa.Table) -> pa.Table:
    """Return dead letters of the rows of one branch, whose records its chain has read."""
    flow, chain = work.flow, chain_of(work.flow, entry)
    topic = source_of(flow, chain.driving)
    rows = rows.filter(pc.equal(rows["side"], target_of(flow, entry)))
    late = BadRecord(row=0, phase="late", error="Late", message="its windows are closed")
    part = record_part(topic.index, rows["d_part"], flow)
    if level_of(flow, work.aggregate) == last_level(flow):
        # delivered by this very task, which must not count into the partition of another
        part = parts(work, texts(rows["key"]))
    return exchange_rows(
        rows.num_rows,
        target=LETTERS,
        part=part,
        kind=DEAD,
        side=letter_side(flow, chain),
        t_phase=1,
        t_topic=topic.index,
        t_part=rows["d_part"],
        t_off=rows["d_off"],
        ts=rows["ts"],
        raw=rows["raw"],
        payload=why(late),
    )
