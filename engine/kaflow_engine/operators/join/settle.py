"""The driving records of a join: which class each is in after a batch."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import Ledger
from kaflow_engine.operators.join.emit import FATES, charge, dead_letters, fates, leave
from kaflow_engine.operators.join.readiness import departing, inner_matched
from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.outcomes.outcomes import (
    DEAD_LETTER,
    EXPIRED,
    FORCED_SHIFT,
    LEDGER_SHARD,
    LEFT,
    SKIPPED,
    class_sql,
    count_changes,
)
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import expiry_letter
from kaflow_engine.operators.row_errors.quarantine import BadRow
from kaflow_engine.operators.rows.partitioning import SHARDS
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import EXCHANGE, NOTE


def settle(
    work: JoinWorkspace, fates: pa.Table, waiting: str | None, counters: Counter[str]
) -> pa.Table:
    """Count how the driving records of table d changed class, and note their flags in d.

    Args:
        work: Where d stands; afterwards `d.flags` holds the new flags, `d.flags_before` the old.
        fates: did, bit.
        waiting: SELECT of did, one for each row that waits after this batch; None: no row waits.
        counters: Takes the changes, unless a ledger counts.

    Returns:
        Notes for the ledger, schema EXCHANGE; empty without one.
    """
    waits, join = "0", ""
    if waiting is not None:
        counted = f"SELECT did, count(*) AS waits FROM ({waiting}) GROUP BY did"
        waits, join = "coalesce(w.waits, 0)", f"LEFT JOIN ({counted}) w ON w.did = d.did"
    work.build(
        "d",
        "SELECT d.* REPLACE (d.flags | coalesce(b.bits, 0) AS flags), d.flags AS flags_before, "
        f"{waits} AS waits "
        "FROM d LEFT JOIN (SELECT did, bit_or(bit) AS bits FROM incoming GROUP BY did) b "
        f"ON b.did = d.did {join}",
        fates,
    )
    if work.ledger is not None:
        return _notes(work, work.ledger)
    before = f"CASE WHEN did > 0 THEN NULL ELSE {class_sql('flags_before', 'waited')} END"
    rows = work.rows(
        f"SELECT {before} AS old, {class_sql('flags', 'waits')} AS new, count(*) "
        "FROM d WHERE counted GROUP BY ALL"
    )
    count_changes(counters, rows)
    return EXCHANGE.empty_table()


def _notes(work: JoinWorkspace, ledger: Ledger) -> pa.Table:
    rows = work.table(
        f"SELECT flags & ~{LEFT} AS bits, waits - waited AS delta, d_batch, d_time, d_part, d_off, "
        f"ts, {LEDGER_SHARD} * {work.flow.partitions} // {SHARDS} AS part FROM d "
        f"WHERE waits <> waited OR (flags & ~{LEFT}) <> (flags_before & ~{LEFT})"
    )
    return exchange_rows(
        rows.num_rows,
        target=target_of(work.flow, ledger),
        part=rows["part"],
        kind=NOTE,
        side=rows["bits"],
        t_off=rows["delta"],
        **{name: rows[name] for name in ("d_batch", "d_time", "d_part", "d_off", "ts")},
    )


def broken(work: JoinWorkspace, failed: list[BadRow]) -> tuple[pa.Table, list[pa.Table]]:
    """Driving records on whose rows the required columns cannot be computed."""
    if not failed:
        return FATES.empty_table(), []
    why = {b.row: b for b in failed}
    rows = work.table(
        "SELECT min(f.rn) AS rn, d.did, any_value(d_part) AS d_part, any_value(d_off) AS d_off, "
        "any_value(d.key) AS key, any_value(raw) AS raw FROM f JOIN d ON d.did = f.did "
        f"WHERE f.rn IN ({', '.join(map(str, why))}) "
        "AND f.cid NOT IN (SELECT cid FROM g) GROUP BY d.did"
    )
    letters = [
        BadRecord(row=rn, phase="sql", error=why[rn].error, message=why[rn].message)
        for rn in rows["rn"].to_pylist()
    ]
    found, bit = charge(work, rows, letters)
    return fates(rows["did"].to_pylist(), bit), found


def hopeless(
    work: JoinWorkspace, settled: pa.Table, failing: pa.Table
) -> tuple[pa.Table, list[pa.Table]]:
    """Driving records that must not wait, whose rows are incomplete: they expire at once.

    Args:
        work: Tables f, c, d, g.
        settled: What became of rows so far.
        failing: Driving records whose rows cannot be computed.
    """
    if not work.can_wait and not work.final and work.driving.needs is None:
        return FATES.empty_table(), []
    lost = work.table(
        "SELECT did, key, d_part, d_off, raw FROM d WHERE did > 0 AND hopeless "
        "AND did IN (SELECT did FROM c WHERE cid NOT IN (SELECT cid FROM g)) "
        "ORDER BY d_part, d_off"
    )
    failed = pc.is_in(settled["bit"], value_set=pa.array([DEAD_LETTER, SKIPPED]))
    sent = settled.filter(pc.invert(failed))["did"].to_pylist()
    gone = pa.array([*sent, *failing["did"].to_pylist()], pa.int64())
    lost = lost.filter(pc.invert(pc.is_in(lost["did"], gone)))
    if not lost.num_rows:
        return FATES.empty_table(), []
    work.load("lost", lost)
    dids = lost["did"].to_pylist()
    if work.driving.on_expiry == "dead_letter":
        letters = dead_letters(
            work, lost, [expiry_letter(work.driving.ttl)] * lost.num_rows, expired=True
        )
        bit = DEAD_LETTER << FORCED_SHIFT if work.ledger is not None else DEAD_LETTER
        return fates(dids, bit), [letters]
    if work.driving.on_expiry == "drop":
        return fates(dids, EXPIRED), []
    rows = departing(
        work,
        f"SELECT * FROM f WHERE {inner_matched(work)} AND did IN (SELECT did FROM lost) "
        "AND (cid, q) IN (SELECT (cid, q0) FROM c) AND cid NOT IN (SELECT cid FROM g)",
        forced=True,
    )
    outcome = leave(work, rows)
    left = set(outcome.fates["did"].to_pylist())
    silent = fates([did for did in dids if did not in left], EXPIRED)
    return pa.concat_tables([outcome.fates, silent]), [outcome.rows]
