"""Which class each driving record is in: the classes add up to the records read."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import Project
from kaflow_engine.operators.rows.partitioning import SHARDS

EMITTED, DEAD_LETTER, FILTERED, EXPIRED, LEFT, SKIPPED = 1, 2, 4, 8, 16, 32
"""What became of rows of a driving record, as bits; LEFT: gone on to the next join."""

FORCED_SHIFT = 8
"""Bits of rows that were sent because their time was up, where the ledger decides about them."""

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

Address = tuple[Any, Any]
"""Targets of rows, or the one of all, and their partitions."""


def ledger_parts(rows: pa.Table, partitions: int) -> pa.ChunkedArray:
    """Return the partitions in which the ledger has the driving records of rows (d_part, d_off)."""
    sql = f"SELECT {LEDGER_SHARD} * {partitions} // {SHARDS} AS part FROM rows"
    return query(sql, rows=rows.select(["d_part", "d_off"]))["part"]


def by_ledger(flow: Flow, project: Project, rows: pa.Table, target: int, part: Any) -> Address:
    """Return target and partition of projected rows: of forced ones those of the chain's ledger.

    Args:
        flow: What runs.
        project: What made the rows.
        rows: d_part, d_off and forced.
        target: Who takes rows that are not forced, or all of them where there is no ledger.
        part: Their partitions.
    """
    ledger = chain_of(flow, project).ledger
    if ledger is None or not pc.any(rows["forced"]).as_py():
        return target, part
    judged = ledger_parts(rows, flow.partitions).cast(part.type)
    forced = rows["forced"]
    return pc.if_else(forced, target_of(flow, ledger), target), pc.if_else(forced, judged, part)


def class_sql(flags: str, waiting: str) -> str:
    """Return SQL for the first class that fits; LEFT is counted by a later join."""
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
