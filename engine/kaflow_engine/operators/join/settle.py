"""The driving records of a join: which class each is in after a batch."""

from collections import Counter

import pyarrow as pa

from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import Ledger
from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.outcomes.outcomes import LEDGER_SHARD, LEFT, class_sql, count_changes
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
