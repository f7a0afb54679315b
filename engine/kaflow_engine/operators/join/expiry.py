"""What falls due: expired before the records of the batch, in the order of its due time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.operators.join.emit import FATES, dead_letters, fates, leave
from kaflow_engine.operators.join.interval_join import add_waiting, combine_stored, load_matches
from kaflow_engine.operators.join.readiness import departing, inner_matched
from kaflow_engine.operators.join.row_codec import (
    Stored,
    read_drivers,
    row_table,
    stored_flags,
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
    class_sql,
    count_changes,
)
from kaflow_engine.operators.row_errors.dead_letters import expiry_letter
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.state.binary_columns import Items
from kaflow_engine.state.keys import entry_keys, split_entries

_RECORDS = EXCHANGE.append(pa.field("pos", pa.int64())).append(pa.field("rn", pa.int64()))
"""Table r, which has no rows when the time of others is up."""
_UNSETTLED = f"flags & {EMITTED | FILTERED} = 0"
"""No row of the driving record was emitted or filtered."""
_EXPIRED = f"{_UNSETTLED} AND (waited > 0 OR flags & {DEAD_LETTER | SKIPPED | LEFT} = 0)"
"""A row of the driving record waited, or none has come of it."""
_ROW = ["did", "suffix", "extra"]


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
    over = _over(work, entries)
    if not len(over.values):
        return []
    if work.driving.on_expiry == "drop" and not work.final and work.ledger is None:
        _count(over, _waiting_under(work, over)[0], counters)
        return []
    due = _read(work, over)
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
        f"SELECT did, key, d_part, d_off, raw FROM d WHERE {_EXPIRED} "
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Over:
    """Entries of driving records, or of rows that wait, whose time is up."""

    keys: pa.BinaryArray
    """Null where they have no join key."""
    sides: Items
    suffixes: pa.BinaryArray
    values: pa.BinaryArray


def _over(work: JoinWorkspace, due: pa.BinaryArray) -> _Over:
    """Read and delete what is due."""
    found = work.state.read(due)
    due, values = due.filter(found.is_valid()), found.drop_null()
    keys, sides, suffixes = split_entries(due)
    ttls = np.full(256, work.driving.ttl, np.int64)  # by side byte
    for side in work.events:
        ttls[side] = work.join.sides[side].ttl
    dues = stored_times(values) + ttls[sides]
    over = dues < work.horizon  # else the TTL has grown since
    for place in np.flatnonzero(~over).tolist():
        work.state.postpone(due[place].as_py(), int(dues[place]))
    work.state.remove(due.filter(pa.array(over)))
    over &= np.isin(sides, (DRIVER, KEYLESS, WAITING))
    sides, kept = sides[over], pa.array(over)
    return _Over(
        keys=pc.if_else(pa.array(sides == KEYLESS), None, keys.filter(kept)),
        sides=sides,
        suffixes=suffixes.filter(kept),
        values=values.filter(kept),
    )


def _count(over: _Over, waiting: Items, counters: Counter[str]) -> None:
    """Count driving records that leave nothing behind."""
    counts = np.bincount(waiting, minlength=len(over.values))
    flags, counted = stored_flags(over.values)
    rows = pa.table(
        {"flags": flags, "counted": counted, "waited": counts + (over.sides != DRIVER)},
    )
    expired = f"flags | CASE WHEN {_EXPIRED} THEN {EXPIRED} ELSE 0 END"
    found = query(
        f"SELECT {class_sql('flags', 'waited')} AS old, {class_sql('expired', '0')} AS new, "
        "count(*) AS records FROM "
        f"(SELECT *, {expired} AS expired FROM rows WHERE counted) GROUP BY ALL",
        rows=rows,
    )
    changes = [(each["old"], each["new"], each["records"]) for each in found.to_pylist()]
    count_changes(counters, changes)


def _read(work: JoinWorkspace, over: _Over) -> Stored:
    """Decode what is due, with the rows that wait for it."""
    ttl = work.driving.ttl
    drivers = read_drivers(work.identity, ttl, -1, over.keys, over.suffixes, over.values)
    index, suffixes, values = _waiting_under(work, over)
    places = pa.array(index)
    owners = over.keys.take(places)
    beside = read_drivers(work.identity, ttl, -1, owners, suffixes, values)
    beside = beside.set_column(0, "did", drivers["did"].take(places))
    waiting = pa.array(over.sides == WAITING)
    rows = [drivers.filter(waiting).select(_ROW), beside.select(_ROW)]
    return Stored(drivers=drivers.drop_columns("extra"), rows=pa.concat_tables(rows))


def _waiting_under(
    work: JoinWorkspace, over: _Over
) -> tuple[Items, Sequence[bytes], Sequence[bytes]]:
    """Read and delete the rows that wait for retained driving records.

    Returns:
        The place of the driving record, suffix and value of each.
    """
    if not (work.retains and work.can_wait):
        return np.array([], np.int64), [], []
    mine = np.flatnonzero(over.keys.is_valid().to_numpy(zero_copy_only=False))
    keys: list[bytes] = over.keys.take(pa.array(mine)).to_pylist()
    starts = over.suffixes.take(pa.array(mine)).to_pylist()
    index, suffixes, values = work.state.entries(WAITING, keys, starts)
    places = mine[np.array(index, np.int64)]
    owners = over.keys.take(pa.array(places))
    work.state.remove(entry_keys(owners, WAITING, pa.array(suffixes, pa.binary())))
    return places, suffixes, values


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
