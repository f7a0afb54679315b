"""Rows that leave a join: handed on, and what became of them to their driving records."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.graph import last_level, level_of, side_name, target_of
from kaflow_engine.operators.handover import KNOWN, Leaving
from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.outcomes.outcomes import (
    DEAD_LETTER,
    FILTERED,
    FORCED_SHIFT,
    LEFT,
    SKIPPED,
    ledger_parts,
)
from kaflow_engine.operators.output.row_letters import row_letters
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import letter_side, refusal
from kaflow_engine.operators.row_errors.dead_letters import why as reason
from kaflow_engine.operators.rows.layout import carried, carried_rows, join_rows
from kaflow_engine.operators.rows.partitioning import keyless_parts, parts_of, record_part
from kaflow_engine.operators.rows.reports import exchange_rows, report_rows
from kaflow_engine.operators.rows.row_text import pack
from kaflow_engine.operators.rows.schemas import DEAD, LETTERS, ORIGIN, TRIGGER


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Travelling rows, and what became of the rows of each driving record."""

    rows: pa.Table
    """Schema EXCHANGE."""
    fates: pa.Table
    """did, bit."""
    passed: pa.Table
    """The rows that were taken (see Taken)."""


FATES = pa.schema([pa.field("did", pa.int64()), pa.field("bit", pa.int64())])


def fates(dids: Sequence[int], bit: int) -> pa.Table:
    """Return one fate for each driving record."""
    return pa.table(
        [pa.array(dids, pa.int64()), pa.array([bit] * len(dids), pa.int64())], schema=FATES
    )


def leave(work: JoinWorkspace, rows: pa.Table, *, charged: bool = True) -> Outcome:
    """Send rows on.

    Args:
        work: The join.
        rows: rn, did, key, d, s<i>, and where they come from: TRIGGER, ORIGIN, ts, members, raw,
            counted, forced, part.
        charged: What the SQL fails on is charged to its driving record; else it leaves no trace.
    """
    for i in range(len(work.join.sides)):
        missing = rows[f"s{i}"].null_count
        work.lookups[i, False] += missing
        work.lookups[i, True] += rows.num_rows - missing
    if work.join.time is not None:
        rows = _timed(work, work.join.time, rows)
    taken = work.hand_on(_leaving(work, rows))
    found = _fates(work, taken.passed, taken.bit)
    if taken.passed.num_rows + len(taken.bad) < rows.num_rows:
        failed = pa.array([b.row for b in taken.bad], pa.int64())
        gone = pa.concat_arrays([taken.passed["rn"].combine_chunks(), failed])
        filtered = rows.filter(pc.invert(pc.is_in(rows["rn"], gone)))
        found = pa.concat_tables([found, _fates(work, filtered, FILTERED)])
    outcome = Outcome(rows=taken.rows, fates=found, passed=taken.passed)
    return _with_bad(work, rows, outcome, taken.bad) if taken.bad and charged else outcome


def _leaving(work: JoinWorkspace, rows: pa.Table) -> Leaving:
    join = work.join
    return Leaving(
        rows=rows,
        typed=join_rows(join, work.batch.batch_time),
        packed=lambda columns: (
            f"SELECT rn, {pack(carried(join, columns))} AS payload FROM {carried_rows(join)}"
        ),
        placed=lambda found: _placed(found, rows),
    )


def _timed(work: JoinWorkspace, time: str, rows: pa.Table) -> pa.Table:
    """Give rows that leave the event time of a later member."""
    typed = join_rows(work.join, work.batch.batch_time)
    found = query(f"SELECT rn, {time} AS ts FROM ({typed})", rows=rows)
    places = pc.index_in(rows["rn"], value_set=found["rn"].combine_chunks())
    latest = pc.max_element_wise(rows["ts"], found["ts"].take(places))
    return rows.set_column(rows.column_names.index("ts"), "ts", latest)


def lookups(work: JoinWorkspace) -> dict[str, list[int]]:
    """Return, by topic, the rows that left and those of them that have a match."""
    found: dict[str, list[int]] = {}
    for i, side in enumerate(work.join.sides):
        both = found.setdefault(side_name(work.flow, side), [0, 0])
        hits = work.lookups[i, True]
        both[0] += hits + work.lookups[i, False]
        both[1] += hits
    return {topic: both for topic, both in found.items() if both[0]}


def _with_bad(
    work: JoinWorkspace, rows: pa.Table, outcome: Outcome, bad: Sequence[BadRecord]
) -> Outcome:
    why = {b.row: b for b in bad}
    failed = rows.filter(pc.is_in(rows["rn"], pa.array(list(why), pa.int64())))
    if work.of_groups:
        letter = _result_letters(work, failed, [why[row] for row in failed["rn"].to_pylist()])
        return replace(outcome, rows=pa.concat_tables([outcome.rows, letter]))
    letters: list[pa.Table] = []
    found = [outcome.fates]
    for held in (False, True):
        some = failed.filter(pc.equal(failed["forced"], held))
        if some.num_rows:
            made, bit = charge(work, some, [why[row] for row in some["rn"].to_pylist()], held)
            letters += made
            found.append(_fates(work, some, bit))
    return Outcome(
        rows=pa.concat_tables([outcome.rows, *letters]),
        fates=pa.concat_tables(found),
        passed=outcome.passed,
    )


def _result_letters(work: JoinWorkspace, rows: pa.Table, why: Sequence[BadRecord]) -> pa.Table:
    """Return dead letters about rows of groups, which are no records, and a report of them."""
    names = [
        f"a row that looked up {key.decode()}" if key is not None else "a row without a key"
        for key in rows["key"].to_pylist()
    ]
    bad = [replace(one, phase="result") for one in why]
    letters = row_letters(work.flow, work.chain, bad, names, ts=rows["ts"], part=rows["part"])
    report = report_rows([{"counters": {"failed_results": rows.num_rows}}])
    return pa.concat_tables([letters, report])


def charge(
    work: JoinWorkspace, rows: pa.Table, why: Sequence[BadRecord], forced: bool = False
) -> tuple[list[pa.Table], int]:
    """Charge what the SQL fails on to driving records, as `on_error` of their topic says.

    Args:
        work: The join.
        rows: key, d_part, d_off and raw of one driving record for each of `why`.
        why: Why the SQL fails.
        forced: The rows were sent because their time was up; where there is a ledger, it decides.

    Returns:
        Their dead letters, and what becomes of them, as a bit.

    Raises:
        SourceError: The topic has `on_error: fail`.
    """
    topic = work.topic
    judged = forced and work.ledger is not None
    if topic.on_error == "fail" and not judged:
        raise refusal(topic, rows["d_part"][0].as_py(), rows["d_off"][0].as_py(), why[0])
    if topic.on_error == "skip":
        return [], SKIPPED
    members = rows["members"] if forced else None
    return [dead_letters(work, rows, why, expired=forced, members=members)], DEAD_LETTER


def dead_letters(
    work: JoinWorkspace,
    rows: pa.Table,
    why: Sequence[BadRecord],
    expired: bool = False,
    members: pa.ChunkedArray | None = None,
) -> pa.Table:
    """Build dead letters for the driving records of rows (d_part, d_off, raw).

    Args:
        work: The join.
        rows: One for each dead letter.
        why: One for each row.
        expired: Their time was up; where there is a ledger, it decides.
        members: Of the rows on which the SQL fails; None: the letters are about driving records.
    """
    flow, target = work.flow, LETTERS
    if level_of(flow, work.join) == last_level(flow):
        # delivered by this very task, which must not count into the partition of another
        keyless = keyless_parts(flow, work.join, rows["d_part"], rows["d_off"])
        part = parts_of(rows["key"], keyless, flow.partitions)
    else:
        part = record_part(work.topic.index, rows["d_part"], flow)
    if expired and work.ledger is not None:
        target, part = target_of(flow, work.ledger), ledger_parts(rows, flow.partitions)
    return exchange_rows(
        rows.num_rows,
        target=target,
        part=part,
        kind=DEAD,
        side=letter_side(flow, work.chain),
        d_part=rows["d_part"],
        d_off=rows["d_off"],
        forced=expired,
        t_phase=1,
        t_topic=work.topic.index,
        t_part=rows["d_part"],
        t_off=rows["d_off"],
        members=members,
        raw=rows["raw"],
        payload=pa.array([reason(bad) for bad in why], pa.string()),
    )


def _placed(found: pa.Table, rows: pa.Table) -> pa.Table:
    """Put what was computed beside where it came from, by `rn`."""
    if not found["rn"].equals(rows["rn"]):
        rows = rows.take(pc.index_in(found["rn"], value_set=rows["rn"].combine_chunks()))
    for name in ("did", "part", "ts", *KNOWN, *TRIGGER, *ORIGIN):
        found = found.append_column(name, rows[name])
    return found


def _fates(work: JoinWorkspace, rows: pa.Table, bit: int) -> pa.Table:
    bits = pa.repeat(pa.scalar(bit, pa.int64()), rows.num_rows)
    if work.ledger is not None and bit != LEFT:
        bits = pc.if_else(rows["forced"], bit << FORCED_SHIFT, bits)
    return pa.table([rows["did"], bits], schema=FATES)
