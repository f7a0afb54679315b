"""What falls due: expired before the records of the batch, in the order of its due time."""

from collections import Counter

import pyarrow as pa

from kaflow_engine.operators.accounts import settle
from kaflow_engine.operators.bench import (
    DEAD_LETTER,
    EMITTED,
    EXPIRED,
    FILTERED,
    FORCED_SHIFT,
    LEFT,
    SKIPPED,
    Bench,
)
from kaflow_engine.operators.dead_letters import expiry_letter
from kaflow_engine.operators.departures import departing, inner_matched
from kaflow_engine.operators.keyed import DRIVER, KEYLESS, WAITING
from kaflow_engine.operators.leaving import FATES, dead_letters, fates, leave
from kaflow_engine.operators.pairing import add_waiting, combine_stored, load_matches
from kaflow_engine.operators.schemas import EXCHANGE
from kaflow_engine.operators.stored import Stored, read_drivers, row_table, stored_ts, waited
from kaflow_engine.operators.versions import load_versions, look_up
from kaflow_engine.state.keys import entry_keys, split_entry

_UNSETTLED = f"flags & {EMITTED | FILTERED} = 0"
"""No row of the driving record was emitted or filtered."""


def expire(bench: Bench, counters: Counter[str]) -> list[pa.Table]:
    """Expire what lies behind the watermark; returns rows that leave because of it."""
    if not bench.batch.due:
        return []
    found: list[pa.Table] = []
    for entries in bench.state.due(bench.batch.horizon):
        found += _expire(bench, entries, counters)
    return found


def _expire(
    bench: Bench, entries: list[tuple[int, bytes]], counters: Counter[str]
) -> list[pa.Table]:
    due = _take(bench, entries)
    if not due.drivers.num_rows:
        return []
    bench.load("d", waited(due.drivers, due.rows))
    bench.load("r", EXCHANGE.append(pa.field("pos", pa.int64())).empty_table())
    found: list[pa.Table] = []
    settled = FATES.empty_table()
    if bench.final or bench.plan.on_expiry == "emit":
        outcome = leave(bench, _last_rows(bench, due))
        found.append(outcome.rows)
        settled = outcome.fates
    bench.load("fates", settled)
    rest = bench.table(
        f"SELECT did, key, d_part, d_off, raw FROM d WHERE {_UNSETTLED} "
        f"AND (waited > 0 OR flags & {DEAD_LETTER | SKIPPED | LEFT} = 0) "
        "AND did NOT IN (SELECT did FROM fates) ORDER BY due, d_part, d_off"
    )
    bit = EXPIRED
    if bench.plan.on_expiry == "dead_letter":
        bit = DEAD_LETTER << FORCED_SHIFT if bench.plan.ledger else DEAD_LETTER
        found.append(
            dead_letters(
                bench, rest, [expiry_letter(bench.plan.driving.ttl)] * rest.num_rows, expired=True
            )
        )
    settled = pa.concat_tables([settled, fates(rest["did"].to_pylist(), bit)])
    found.append(settle(bench, settled, None, counters))
    return found


def _take(bench: Bench, entries: list[tuple[int, bytes]]) -> Stored:
    """Read and delete what is due, with all that hangs on it."""
    state = bench.state
    found: list[tuple[bytes | None, bytes, bytes]] = []
    waiting: list[bool] = []
    gone: list[tuple[int, bytes]] = []
    ttls = {i: bench.step.sides[i].ttl for i in bench.events}
    values = state.values([entry for _, entry in entries])
    for (at, entry), value in zip(entries, values, strict=True):
        key, side, suffix = split_entry(entry)
        if value is not None:
            due = stored_ts(value) + ttls.get(side, bench.plan.driving.ttl)
            if due >= bench.batch.horizon:  # the TTL has grown since
                state.postpone(entry, at, due)
                continue
        gone.append((at, entry))
        if side in (DRIVER, KEYLESS, WAITING) and value is not None:
            found.append((None if side == KEYLESS else key, suffix, value))
            waiting.append(side == WAITING)
    state.forget(gone)
    keys, suffixes, kept = zip(*found, strict=True) if found else ((), (), ())
    drivers = read_drivers(bench.plan.driving.ttl, -1, keys, suffixes, kept)
    rows = drivers.select(["did", "suffix", "extra"]).filter(pa.array(waiting, pa.bool_()))
    drivers = drivers.drop_columns("extra")
    if bench.retains and bench.can_wait:
        rows = pa.concat_tables([rows, _take_waiting(bench, drivers)])
    return Stored(drivers=drivers, rows=rows)


def _take_waiting(bench: Bench, drivers: pa.Table) -> pa.Table:
    drivers = drivers.filter(drivers["key"].is_valid())
    keys: list[bytes] = drivers["key"].to_pylist()
    found = bench.state.entries(WAITING, keys, drivers["suffix"].to_pylist())
    index, suffixes, values = found
    owners = [keys[i] for i in index]
    rows = read_drivers(bench.plan.driving.ttl, -1, owners, suffixes, values).select(
        ["did", "suffix", "extra"]
    )
    entries = entry_keys(pa.array(owners, pa.binary()), WAITING, pa.array(suffixes, pa.binary()))
    bench.state.change(entries, pa.nulls(len(entries), pa.binary()))
    return rows.set_column(0, "did", drivers["did"].take(pa.array(index, pa.int64())))


def _last_rows(bench: Bench, due: Stored) -> pa.Table:
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


def _load_matches(bench: Bench, drivers: pa.Table) -> None:
    kept = drivers if bench.keeps_matches else drivers.slice(0, 0)
    for i in bench.events:
        table, entries = load_matches(bench, i, kept)
        bench.load(f"p{i}", table)
        bench.state.change(entries, pa.nulls(len(entries), pa.binary()))
