"""What falls due: expired before the records of the batch, in the order of its due time."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.operators.accounts import settle
from kaflow_engine.operators.bench import (
    DEAD_LETTER,
    EMITTED,
    EXPIRED,
    FILTERED,
    FORCED_SHIFT,
    Bench,
)
from kaflow_engine.operators.departures import departing, inner_matched
from kaflow_engine.operators.intake import BadRecord
from kaflow_engine.operators.keyed import DRIVER, KEYLESS, MATCH, WAITING
from kaflow_engine.operators.leaving import FATES, dead_letters, fates, leave
from kaflow_engine.operators.pairing import add_waiting, combine_stored
from kaflow_engine.operators.schemas import EXCHANGE
from kaflow_engine.operators.stored import (
    StoredDriver,
    StoredRow,
    driver_table,
    match_table,
    read_driver,
    read_row,
    row_table,
)
from kaflow_engine.operators.versions import load_versions, look_up
from kaflow_engine.state.keys import entry_key, split_entry

_UNSETTLED = f"flags & {EMITTED | FILTERED} = 0"
"""No row of the driving record was emitted or filtered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    drivers: list[StoredDriver]
    rows: list[StoredRow]


def expire(bench: Bench, counters: Counter[str]) -> list[pa.Table]:
    """Expire what lies behind the watermark; returns rows that leave because of it."""
    if not bench.batch.due:
        return []
    due = _take_due(bench)
    if not due.drivers:
        return []
    waited = Counter(row.did for row in due.rows)
    bench.load("d", driver_table(due.drivers, bench.plan.driving.ttl, waited))
    bench.load("r", EXCHANGE.append(pa.field("pos", pa.int64())).empty_table())
    found: list[pa.Table] = []
    settled = FATES.empty_table()
    if bench.final or bench.plan.on_expiry == "emit":
        outcome = leave(bench, _last_rows(bench, due))
        found.append(outcome.rows)
        settled = outcome.fates
    bench.load("fates", settled)
    rest = bench.table(
        f"SELECT did, d_part, d_off, raw FROM d WHERE {_UNSETTLED} "
        "AND did NOT IN (SELECT did FROM fates) ORDER BY due, d_part, d_off"
    )
    bit = EXPIRED
    if bench.plan.on_expiry == "dead_letter":
        bit = DEAD_LETTER << FORCED_SHIFT if bench.plan.ledger else DEAD_LETTER
        found.append(
            dead_letters(bench, rest, [expiry_letter(bench)] * rest.num_rows, expired=True)
        )
    settled = pa.concat_tables([settled, fates(rest["did"].to_pylist(), bit)])
    found.append(settle(bench, settled, None, counters))
    return found


def expiry_letter(bench: Bench) -> BadRecord:
    """Return why an expired record becomes a dead letter."""
    return BadRecord(
        row=0,
        phase="expiry",
        error="Expired",
        message=f"not complete within {bench.plan.driving.ttl} ms",
    )


def _take_due(bench: Bench) -> _Due:
    """Read and delete what is due, with all that hangs on it."""
    state = bench.state
    drivers: list[StoredDriver] = []
    rows: list[StoredRow] = []
    entries = state.due(bench.batch.horizon)
    values = state.values([entry for _, entry in entries])
    for (due, entry), value in zip(entries, values, strict=True):
        state.delete(entry, due)
        key, side, suffix = split_entry(entry)
        if side not in (DRIVER, KEYLESS, WAITING) or value is None:
            continue
        did = -1 - len(drivers)
        drivers.append(read_driver(did, None if side == KEYLESS else key, suffix, value))
        if side == WAITING:
            rows.append(read_row(did, suffix, value))
    if bench.retains and bench.can_wait:
        rows += _take_waiting(bench, drivers)
    return _Due(drivers=drivers, rows=rows)


def _take_waiting(bench: Bench, drivers: list[StoredDriver]) -> list[StoredRow]:
    keyed = [d for d in drivers if d.key is not None]
    keys = [d.key or b"" for d in keyed]
    rows: list[StoredRow] = []
    found = bench.state.entries(WAITING, keys, [d.suffix for d in keyed])
    for i, suffix, value in zip(*found, strict=True):
        bench.state.delete(entry_key(keys[i], WAITING, suffix))
        rows.append(read_row(keyed[i].did, suffix, value))
    return rows


def _last_rows(bench: Bench, due: _Due) -> pa.Table:
    """Return the rows that expired driving records leave behind."""
    _load_matches(bench, due.drivers)
    if bench.final:
        combine_stored(bench)
    else:
        combine_stored(bench, only="FALSE")
        add_waiting(bench, row_table(bench, due.rows))
    load_versions(bench, bench.keys("SELECT DISTINCT key FROM d WHERE key IS NOT NULL"))
    look_up(bench, "SELECT cid, 0 AS q FROM c")
    settled = f"did IN (SELECT did FROM d WHERE {_UNSETTLED})"
    return departing(
        bench,
        f"SELECT * FROM f WHERE {inner_matched(bench)} AND {settled}",
        expired=True,
        forced=True,
    )


def _load_matches(bench: Bench, drivers: list[StoredDriver]) -> None:
    keyed = [d for d in drivers if d.key is not None]
    keys = [d.key or b"" for d in keyed]
    for i in bench.events:
        if not bench.keeps_matches:
            bench.load(f"p{i}", match_table(bench, i, [], [], [])[0])
            continue
        table, places = match_table(
            bench, i, [d.did for d in keyed], keys, [d.suffix for d in keyed]
        )
        bench.load(f"p{i}", table)
        for n, suffix in places:
            bench.state.delete(entry_key(keys[n], MATCH, suffix))
