"""Rows that leave a step: on to the next one, or finished into output records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.outcomes.outcomes import (
    DEAD_LETTER,
    EMITTED,
    FILTERED,
    FORCED_SHIFT,
    LEDGER_SHARD,
    LEFT,
    SKIPPED,
)
from kaflow_engine.operators.output.projection import finish_rows
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import refusal
from kaflow_engine.operators.row_errors.dead_letters import why as reason
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.rows.layout import carried, carried_rows, keyed, step_rows
from kaflow_engine.operators.rows.partitioning import (
    SHARDS,
    dead_part,
    output_parts,
    parts_of,
    spread,
)
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.row_text import pack
from kaflow_engine.operators.rows.schemas import DEAD, DRIVING, ORIGIN, READY, TRIGGER


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Travelling rows, and what became of the rows of each driving record."""

    rows: pa.Table
    """Schema EXCHANGE."""
    fates: pa.Table
    """did, bit."""
    emitted: pa.Table
    """Finished rows: rn, out_key, value; empty where rows go on."""


FATES = pa.schema([pa.field("did", pa.int64()), pa.field("bit", pa.int64())])


def fates(dids: Sequence[int], bit: int) -> pa.Table:
    """Return one fate for each driving record."""
    return pa.table(
        [pa.array(dids, pa.int64()), pa.array([bit] * len(dids), pa.int64())], schema=FATES
    )


def leave(work: JoinWorkspace, rows: pa.Table, *, charged: bool = True) -> Outcome:
    """Send rows on.

    Args:
        work: The step.
        rows: rn, did, key, d, s<i>, and where they come from: TRIGGER, ORIGIN, ts, members, raw,
            counted, forced, part.
        charged: What the SQL fails on is charged to its driving record; else it leaves no trace.
    """
    for i in range(len(work.step.sides)):
        missing = rows[f"s{i}"].null_count
        work.lookups[i, False] += missing
        work.lookups[i, True] += rows.num_rows - missing
    outcome, bad = _finished(work, rows) if work.last else _onward(work, rows)
    return _with_bad(work, rows, outcome, bad) if bad and charged else outcome


def lookups(work: JoinWorkspace) -> dict[str, list[int]]:
    """Return, by topic, the rows that left and those of them that have a match."""
    found: dict[str, list[int]] = {}
    for i, side in enumerate(work.step.sides):
        both = found.setdefault(work.plan.topics[side.topic].name, [0, 0])
        hits = work.lookups[i, True]
        both[0] += hits + work.lookups[i, False]
        both[1] += hits
    return {topic: both for topic, both in found.items() if both[0]}


def _onward(work: JoinWorkspace, rows: pa.Table) -> tuple[Outcome, list[BadRecord]]:
    step = work.step
    payload = f"SELECT rn, {pack(carried(step))} AS payload FROM {carried_rows(step)}"
    typed = step_rows(step, work.batch.batch_time)
    key = f"SELECT rn, {step.next_key} AS k FROM ({typed})"
    sql = (
        f"SELECT p.rn, p.payload, {keyed('k.k')} AS key FROM ({payload}) p "
        f"JOIN ({key}) k ON k.rn = p.rn"
    )
    found, failed = guarded(sql, rows)
    bad = [BadRecord(row=b.row, phase="sql", error=b.error, message=b.message) for b in failed]
    kept = _joined(found, rows)
    keyless = spread(kept["d_part"], kept["d_off"], work.plan.partitions)
    travelling = exchange_rows(
        kept.num_rows,
        stage=work.number + 1,
        part=parts_of(kept["key"], keyless, work.plan.partitions),
        kind=DRIVING,
        key=kept["key"],
        payload=kept["payload"],
        doomed=False,
        **_origin(kept),
    )
    left = _fates(work, kept, LEFT)
    return Outcome(rows=travelling, fates=left, emitted=kept.slice(0, 0)), bad


def _finished(work: JoinWorkspace, rows: pa.Table) -> tuple[Outcome, list[BadRecord]]:
    typed = step_rows(work.step, work.batch.batch_time)
    done = finish_rows(work.plan.finish, typed, rows)
    kept = _joined(done.rows, rows)
    stage, part = _address(work, kept)
    travelling = exchange_rows(
        kept.num_rows,
        stage=stage,
        part=part,
        kind=READY,
        key=kept["out_key"],
        value=kept["value"],
        **_origin(kept),
    )
    gone = pa.concat_arrays(
        [kept["rn"].combine_chunks(), pa.array([b.row for b in done.bad], pa.int64())]
    )
    filtered = rows.filter(pc.invert(pc.is_in(rows["rn"], gone)))
    found = pa.concat_tables([_fates(work, kept, EMITTED), _fates(work, filtered, FILTERED)])
    return Outcome(rows=travelling, fates=found, emitted=done.rows), list(done.bad)


def _with_bad(
    work: JoinWorkspace, rows: pa.Table, outcome: Outcome, bad: Sequence[BadRecord]
) -> Outcome:
    why = {b.row: b for b in bad}
    failed = rows.filter(pc.is_in(rows["rn"], pa.array(list(why), pa.int64())))
    letters, bit = charge(work, failed, [why[row] for row in failed["rn"].to_pylist()])
    return Outcome(
        rows=pa.concat_tables([outcome.rows, *letters]),
        fates=pa.concat_tables([outcome.fates, _fates(work, failed, bit)]),
        emitted=outcome.emitted,
    )


def charge(
    work: JoinWorkspace, rows: pa.Table, why: Sequence[BadRecord]
) -> tuple[list[pa.Table], int]:
    """Charge what the SQL fails on to driving records, as `on_error` of their topic says.

    Args:
        work: The step.
        rows: key, d_part, d_off and raw of one driving record for each of `why`.
        why: Why the SQL fails.

    Returns:
        Their dead letters, and what becomes of them, as a bit.

    Raises:
        SourceError: The topic has `on_error: fail`.
    """
    topic = work.plan.topics[work.plan.driving.topic]
    if topic.on_error == "fail":
        raise refusal(topic, rows["d_part"][0].as_py(), rows["d_off"][0].as_py(), why[0])
    if topic.on_error == "skip":
        return [], SKIPPED
    return [dead_letters(work, rows, why)], DEAD_LETTER


def dead_letters(
    work: JoinWorkspace, rows: pa.Table, why: Sequence[BadRecord], expired: bool = False
) -> pa.Table:
    """Build dead letters for the driving records of rows (d_part, d_off, raw).

    Args:
        work: The step.
        rows: One for each dead letter.
        why: One for each row.
        expired: Their time was up; where there is a ledger, it decides.
    """
    plan = work.plan
    stage = plan.stage_count - 1
    if work.number == stage:
        # delivered by this very task, which must not count into the partition of another
        keyless = spread(rows["d_part"], rows["d_off"], plan.partitions)
        part = parts_of(rows["key"], keyless, plan.partitions)
    else:
        part = dead_part(plan.driving.topic, rows["d_part"], plan)
    if expired and plan.ledger:
        shard = f"{LEDGER_SHARD} * {plan.partitions} // {SHARDS}"
        stage = len(plan.steps) + 1
        part = query(f"SELECT {shard} AS part FROM rows", rows=rows.select(["d_part", "d_off"]))[
            "part"
        ]
    return exchange_rows(
        rows.num_rows,
        stage=stage,
        part=part,
        kind=DEAD,
        d_part=rows["d_part"],
        d_off=rows["d_off"],
        forced=expired,
        t_phase=1,
        t_topic=work.plan.driving.topic,
        t_part=rows["d_part"],
        t_off=rows["d_off"],
        raw=rows["raw"],
        payload=pa.array([reason(bad) for bad in why], pa.string()),
    )


def _joined(found: pa.Table, rows: pa.Table) -> pa.Table:
    """Put what was computed beside where it came from, by `rn`."""
    if not found["rn"].equals(rows["rn"]):
        rows = rows.take(pc.index_in(found["rn"], value_set=rows["rn"].combine_chunks()))
    for name in ("did", "part", "counted", "forced", "raw", "members", "ts", *TRIGGER, *ORIGIN):
        found = found.append_column(name, rows[name])
    return found


def _address(work: JoinWorkspace, rows: pa.Table) -> tuple[Any, Any]:
    """Return stage and partition of finished rows; the ledger decides about forced ones."""
    plan = work.plan
    last = plan.stage_count - 1
    if not plan.last_exchange:
        return last, rows["part"]
    part = output_parts(rows["out_key"], plan.partitions)
    if not plan.ledger or not pc.any(rows["forced"]).as_py():
        return last, part
    places = query(
        f"SELECT {LEDGER_SHARD} * {plan.partitions} // {SHARDS} AS part FROM rows",
        rows=rows.select(["d_part", "d_off"]),
    )
    stage = pc.if_else(rows["forced"], len(plan.steps) + 1, last)
    return stage, pc.if_else(rows["forced"], places["part"], part)


def _fates(work: JoinWorkspace, rows: pa.Table, bit: int) -> pa.Table:
    bits = pa.repeat(pa.scalar(bit, pa.int64()), rows.num_rows)
    if work.plan.ledger and bit != LEFT:
        bits = pc.if_else(rows["forced"], bit << FORCED_SHIFT, bits)
    return pa.table([rows["did"], bits], schema=FATES)


def _origin(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    names = (*TRIGGER, *ORIGIN, "ts", "members", "raw", "counted", "forced")
    return {name: rows[name] for name in names}
