"""Which class each driving record is in: the classes add up to the records read."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# duckdb and pyarrow leave types out

from collections import Counter

import pyarrow as pa

from kaflow_engine.operators.bench import (
    DEAD_LETTER,
    EMITTED,
    EXPIRED,
    FILTERED,
    LEFT,
    Bench,
)

KEPT_FLAGS = EMITTED | DEAD_LETTER | FILTERED | LEFT
"""Flags that a retained driving record keeps."""


def class_sql(flags: str, waiting: str) -> str:
    """Return SQL for the first class that fits; LEFT is counted by a later step."""
    return (
        f"CASE WHEN {flags} & {EMITTED} > 0 THEN 'emitted' "
        f"WHEN {flags} & {DEAD_LETTER} > 0 THEN 'dead_letter' "
        f"WHEN {waiting} THEN 'waiting' "
        f"WHEN {flags} & {FILTERED} > 0 THEN 'filtered' "
        f"WHEN {flags} & {LEFT} > 0 THEN NULL "
        f"WHEN {flags} & {EXPIRED} > 0 THEN 'expired' "
        f"ELSE 'waiting' END"
    )


def settle(bench: Bench, fates: pa.Table, waiting: str) -> dict[str, int]:
    """Count how the driving records of table d changed class, and note their flags in d.

    Args:
        bench: Where d stands; afterwards `d.flags` holds the new flags and `d.changed` tells them.
        fates: did, bit.
        waiting: SELECT of did: those with waiting rows after this batch.
    """
    bench.load("fates", fates)
    bench.run(
        "CREATE OR REPLACE TEMP TABLE d AS "
        "SELECT d.* REPLACE (d.flags | coalesce(b.bits, 0) AS flags), d.flags AS flags_before, "
        f"d.did IN ({waiting}) AS waits "
        "FROM d LEFT JOIN (SELECT did, bit_or(bit) AS bits FROM fates GROUP BY did) b "
        "ON b.did = d.did"
    )
    before = f"CASE WHEN did > 0 THEN NULL ELSE {class_sql('flags_before', 'waited')} END"
    counters: Counter[str] = Counter()
    for old, new, count in bench.rows(
        f"SELECT {before} AS old, {class_sql('flags', 'waits')} AS new, count(*) "
        "FROM d WHERE counted GROUP BY ALL"
    ):
        if old is not None:
            counters[old] -= count
        if new is not None:
            counters[new] += count
    return dict(counters)
