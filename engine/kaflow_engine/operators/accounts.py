"""Which class each driving record is in: the classes add up to the records read."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.bench import (
    DEAD_LETTER,
    EMITTED,
    EXPIRED,
    FILTERED,
    LEFT,
    SKIPPED,
    Bench,
)
from kaflow_engine.operators.reports import exchange_rows
from kaflow_engine.operators.schemas import EXCHANGE, NOTE
from kaflow_engine.operators.shards import SHARDS

KEPT_FLAGS = EMITTED | DEAD_LETTER | FILTERED | LEFT | SKIPPED
"""Flags that a retained driving record keeps."""

_NAMES = {
    EMITTED: "emitted",
    DEAD_LETTER: "dead_letter",
    FILTERED: "filtered",
    SKIPPED: "skipped",
}

LEDGER_SHARD = f"((d_part * 31 + d_off) % {SHARDS})"
"""SQL: the shard of a driving record's place in the ledger."""


def class_sql(flags: str, waiting: str) -> str:
    """Return SQL for the first class that fits; LEFT is counted by a later step."""
    return (
        f"CASE WHEN {flags} & {EMITTED} > 0 THEN 'emitted' "
        f"WHEN {flags} & {DEAD_LETTER} > 0 THEN 'dead_letter' "
        f"WHEN {waiting} > 0 THEN 'waiting' "
        f"WHEN {flags} & {FILTERED} > 0 THEN 'filtered' "
        f"WHEN {flags} & {LEFT} > 0 THEN NULL "
        f"WHEN {flags} & {EXPIRED} > 0 THEN 'expired' "
        f"WHEN {flags} & {SKIPPED} > 0 THEN 'skipped' "
        f"ELSE 'waiting' END"
    )


def settle(bench: Bench, fates: pa.Table, waiting: str | None, counters: Counter[str]) -> pa.Table:
    """Count how the driving records of table d changed class, and note their flags in d.

    Args:
        bench: Where d stands; afterwards `d.flags` holds the new flags, `d.flags_before` the old.
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
    bench.build(
        "d",
        "SELECT d.* REPLACE (d.flags | coalesce(b.bits, 0) AS flags), d.flags AS flags_before, "
        f"{waits} AS waits "
        "FROM d LEFT JOIN (SELECT did, bit_or(bit) AS bits FROM incoming GROUP BY did) b "
        f"ON b.did = d.did {join}",
        fates,
    )
    if bench.plan.ledger:
        return _notes(bench)
    before = f"CASE WHEN did > 0 THEN NULL ELSE {class_sql('flags_before', 'waited')} END"
    rows = bench.rows(
        f"SELECT {before} AS old, {class_sql('flags', 'waits')} AS new, count(*) "
        "FROM d WHERE counted GROUP BY ALL"
    )
    count_changes(counters, rows)
    return EXCHANGE.empty_table()


def count_fates(counters: Counter[str], fates: pa.Table, counted: pa.ChunkedArray) -> None:
    """Count driving records that one row each settles.

    Args:
        counters: Takes the counts.
        fates: did and bit.
        counted: At the place `did`, whether the row decides its record's class.
    """
    bits = fates["bit"].filter(counted.take(fates["did"]))
    for count in pc.value_counts(bits).to_pylist():
        if count["values"] != LEFT:
            counters[_NAMES[count["values"]]] += count["counts"]


def count_changes(counters: Counter[str], rows: list[tuple[str | None, str | None, int]]) -> None:
    """Count driving records that went from one class to another."""
    for old, new, count in rows:
        if old is not None:
            counters[old] -= count
        if new is not None:
            counters[new] += count


def _notes(bench: Bench) -> pa.Table:
    rows = bench.table(
        f"SELECT flags & ~{LEFT} AS bits, waits - waited AS delta, d_batch, d_time, d_part, d_off, "
        f"ts, {LEDGER_SHARD} * {bench.plan.partitions} // {SHARDS} AS part FROM d "
        f"WHERE waits <> waited OR (flags & ~{LEFT}) <> (flags_before & ~{LEFT})"
    )
    return exchange_rows(
        rows.num_rows,
        stage=len(bench.plan.steps) + 1,
        part=rows["part"],
        kind=NOTE,
        side=rows["bits"],
        t_off=rows["delta"],
        **{name: rows[name] for name in ("d_batch", "d_time", "d_part", "d_off", "ts")},
    )
