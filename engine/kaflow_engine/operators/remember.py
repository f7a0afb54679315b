"""What a step keeps for later batches: events, driving records, matches, waiting rows."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

from collections.abc import Sequence

from kaflow_engine.operators.accounts import KEPT_FLAGS
from kaflow_engine.operators.bench import NEVER, Bench
from kaflow_engine.operators.keyed import DRIVER, KEYLESS, MATCH, WAITING, place_suffix
from kaflow_engine.operators.pairing import event_value
from kaflow_engine.operators.stored import (
    StoredRow,
    driver_suffix,
    driver_value,
    match_value,
    member_suffix,
    row_value,
)
from kaflow_engine.state.keys import entry_key


def remember(bench: Bench, stored: Sequence[StoredRow]) -> None:
    """Write what the batch leaves behind; tables as at the end of the step."""
    _events(bench)
    if bench.retains:
        _drivers(bench)
    if bench.keeps_matches:
        _matches(bench)
    if bench.can_wait:
        _waiting(bench, stored)


def _events(bench: Bench) -> None:
    for i in bench.moved.intersection(bench.events):
        for key, ts, order, text, due in bench.rows(
            f"SELECT key, ts, ord, s, due FROM e{i} WHERE pos > 0 AND due >= {bench.batch.horizon}"
        ):
            entry = entry_key(key, i, place_suffix(order[2], order[3]))
            bench.state.put(entry, event_value(ts, order, text), due)


def _drivers(bench: Bench) -> None:
    """Keep new driving records that may still meet something, and flags that changed."""
    rows = bench.table(
        "SELECT * FROM d WHERE (did > 0 AND NOT hopeless) OR (did < 0 AND flags <> flags_before)"
    )
    for row in rows.to_pylist():
        suffix = driver_suffix(row)
        if row["key"] is None:
            entry = entry_key(bytes((row["d_off"] % 256,)), KEYLESS, suffix)
        else:
            entry = entry_key(row["key"], DRIVER, suffix)
        due = row["due"] if row["did"] > 0 else None
        bench.state.put(entry, driver_value(row, row["flags"] & KEPT_FLAGS), due)


def _matches(bench: Bench) -> None:
    for i in bench.events:
        for row in bench.table(
            f"SELECT d.key, d.d_part, d.d_off, d.members, p.ord, p.s FROM new_pairs{i} p "
            "JOIN d ON d.did = p.did WHERE NOT d.hopeless"
        ).to_pylist():
            order: list[int] = row["ord"]
            place = driver_suffix(row) + bytes((i,)) + place_suffix(order[2], order[3])
            bench.state.put(entry_key(row["key"], MATCH, place), match_value(order, row["s"]))


def _waiting(bench: Bench, stored: Sequence[StoredRow]) -> None:
    sides = "".join(f", c.o{i}, c.s{i}" for i in bench.events)
    for row in bench.table(
        f"SELECT d.*{sides} FROM waiting w JOIN c ON c.cid = w.cid JOIN d ON d.did = w.did "
        "WHERE c.wid IS NULL"
    ).to_pylist():
        members = [row[f"o{i}"] for i in bench.events]
        texts = [row[f"s{i}"] for i in bench.events]
        suffix = driver_suffix(row) + member_suffix(members)
        entry = entry_key(row["key"], WAITING, suffix)
        due = None if bench.retains else row["due"]
        bench.state.put(entry, row_value(row, members, texts), due)
    for wid, key, due in (
        ()
        if not stored
        else bench.rows(
            "SELECT c.wid, d.key, d.due FROM c JOIN d ON d.did = c.did WHERE c.wid IS NOT NULL "
            f"AND (c.void < {NEVER} OR c.cid NOT IN (SELECT cid FROM waiting))"
        )
    ):
        entry = entry_key(key, WAITING, stored[wid].suffix)
        bench.state.delete(entry, None if bench.retains else due)
