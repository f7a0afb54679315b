"""Which class each driving record is in: the classes add up to the records read."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

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
