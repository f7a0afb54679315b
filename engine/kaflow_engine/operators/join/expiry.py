"""What falls due: expired before the records of the batch, in the order of its due time."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.join.emit import FATES, dead_letters, fates, leave
from kaflow_engine.operators.join.interval_join import add_waiting, combine_stored, load_matches
from kaflow_engine.operators.join.readiness import departing, inner_matched
from kaflow_engine.operators.join.row_codec import (
    Stored,
    read_drivers,
    row_table,
    stored_times,
    waited,
)
from kaflow_engine.operators.join.settle import settle
from kaflow_engine.operators.join.temporal_join import load_versions, look_up
from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.keyed_state import DRIVER, KEYLESS, WAITING
from kaflow_engine.operators.outcomes.outcomes import (
    DEAD_LETTER,
    EMITTED,
    EXPIRED,
    FILTERED,
    FORCED_SHIFT,
    LEFT,
    SKIPPED,
)
from kaflow_engine.operators.row_errors.dead_letters import expiry_letter
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.state.keys import entry_keys, split_entries

_RECORDS = EXCHANGE.append(pa.field("pos", pa.int64())).append(pa.field("rn", pa.int64()))
"""Table r, which has no rows when the time of others is up."""
_UNSETTLED = f"flags & {EMITTED | FILTERED} = 0"
"""No row of the driving record was emitted or filtered."""


def expire(work: JoinWorkspace, counters: Counter[str], *, looks: bool = False) -> list[pa.Table]:
    """Expire what lies behind the watermark; returns rows that leave because of it.

    Args:
        work: The join.
        counters: Takes the classes of driving records.
        looks: The batch itself may have brought what is due.
    """
    if not looks and not work.batch.may_be_due(work.chain.number):
        return []
    found: list[pa.Table] = []
    for dues in work.state.take_due(work.horizon):
        found += _expire(work, dues.entries, counters)
    return found


def _expire(work: JoinWorkspace, entries: pa.BinaryArray, counters: Counter[str]) -> list[pa.Table]:
    due = _take(work, entries)
    if not due.drivers.num_rows:
        return []
    work.load("d", waited(due.drivers, due.rows))
    if not work.final:
        work.run("UPDATE d SET waited = 1 WHERE key IS NULL")
    work.load("r", _RECORDS.empty_table())
    found: list[pa.Table] = []
    settled = FATES.empty_table()
    if work.final or work.driving.on_expiry == "emit":
        outcome = leave(work, _last_rows(work, due))
        found.append(outcome.rows)
        settled = outcome.fates
    work.load("fates", settled)
    rest = work.table(
        f"SELECT did, key, d_part, d_off, raw FROM d WHERE {_UNSETTLED} "
        f"AND (waited > 0 OR flags & {DEAD_LETTER | SKIPPED | LEFT} = 0) "
        "AND did NOT IN (SELECT did FROM fates) ORDER BY due, d_part, d_off"
    )
    bit = EXPIRED
    if work.driving.on_expiry == "dead_letter":
        bit = DEAD_LETTER << FORCED_SHIFT if work.ledger is not None else DEAD_LETTER
        found.append(
            dead_letters(
                work, rest, [expiry_letter(work.driving.ttl)] * rest.num_rows, expired=True
            )
        )
    settled = pa.concat_tables([settled, fates(rest["did"].to_pylist(), bit)])
    found.append(settle(work, settled, None, counters))
    return found


def _take(work: JoinWorkspace, due: pa.BinaryArray) -> Stored:
    """Read and delete what is due, with all that hangs on it."""
    found = work.state.read(due)
    there = found.is_valid()
    due, values = due.filter(there), found.drop_null()
    keys, sides, suffixes = split_entries(due)
    dues = stored_times(values)
    for side in np.unique(sides).tolist():
        ttl = work.join.sides[side].ttl if side in work.events else work.driving.ttl
        dues[sides == side] += ttl
    over = dues < work.horizon  # else the TTL has grown since
    for place in np.flatnonzero(~over).tolist():
        work.state.postpone(due[place].as_py(), int(dues[place]))
    work.state.remove(due.filter(pa.array(over)))
    kept = pa.array(over & np.isin(sides, (DRIVER, KEYLESS, WAITING)))
    keyless, waiting = (pa.array(sides == side).filter(kept) for side in (KEYLESS, WAITING))
    keys = pc.if_else(keyless, None, keys.filter(kept))
    drivers = read_drivers(
        work.identity, work.driving.ttl, -1, keys, suffixes.filter(kept), values.filter(kept)
    )
    rows = drivers.select(["did", "suffix", "extra"]).filter(waiting)
    drivers = drivers.drop_columns("extra")
    if work.retains and work.can_wait:
        rows = pa.concat_tables([rows, _take_waiting(work, drivers)])
    return Stored(drivers=drivers, rows=rows)


def _take_waiting(work: JoinWorkspace, drivers: pa.Table) -> pa.Table:
    drivers = drivers.filter(drivers["key"].is_valid())
    keys: list[bytes] = drivers["key"].to_pylist()
    found = work.state.entries(WAITING, keys, drivers["suffix"].to_pylist())
    index, suffixes, values = found
    owners = [keys[i] for i in index]
    rows = read_drivers(work.identity, work.driving.ttl, -1, owners, suffixes, values).select(
        ["did", "suffix", "extra"]
    )
    entries = entry_keys(pa.array(owners, pa.binary()), WAITING, pa.array(suffixes, pa.binary()))
    work.state.remove(entries)
    return rows.set_column(0, "did", drivers["did"].take(pa.array(index, pa.int64())))


def _last_rows(work: JoinWorkspace, due: Stored) -> pa.Table:
    """Return the rows that expired driving records leave behind."""
    _load_matches(work, due.drivers)
    if work.final:
        combine_stored(work)
    else:
        combine_stored(work, only="d.key IS NULL")
        add_waiting(work, row_table(work, due.rows))
    load_versions(work, work.keys("SELECT DISTINCT key FROM d WHERE key IS NOT NULL"))
    look_up(work, "SELECT cid, 0 AS q FROM c")
    settled = f"did IN (SELECT did FROM d WHERE {_UNSETTLED})"
    return departing(
        work,
        f"SELECT * FROM f WHERE {inner_matched(work)} AND {settled}",
        expired=True,
        forced=True,
    )


def _load_matches(work: JoinWorkspace, drivers: pa.Table) -> None:
    kept = drivers if work.keeps_matches else drivers.slice(0, 0)
    for i in work.events:
        table, entries = load_matches(work, i, kept)
        work.load(f"p{i}", table)
        work.state.remove(entries)
