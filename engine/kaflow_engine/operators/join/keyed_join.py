"""One keyed join in one task: rows and records meet over one join key."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import cursor
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.handover import HandOn
from kaflow_engine.operators.join.direct.lookup_join import only_looks_up, settle_at_once
from kaflow_engine.operators.join.direct.moved import moved_by
from kaflow_engine.operators.join.direct.release import release
from kaflow_engine.operators.join.emit import fates, leave, lookups
from kaflow_engine.operators.join.expiry import expire
from kaflow_engine.operators.join.identity import numbered
from kaflow_engine.operators.join.interval_join import (
    add_waiting,
    combine,
    drop_met,
    load_events,
    load_matches,
    pair,
)
from kaflow_engine.operators.join.readiness import choose, departing, unmatched
from kaflow_engine.operators.join.retain import remember
from kaflow_engine.operators.join.row_codec import load_stored, row_table, waited
from kaflow_engine.operators.join.settle import broken, hopeless, settle
from kaflow_engine.operators.join.temporal_join import load_versions, look_up, store_versions
from kaflow_engine.operators.join.update_emission import load_emitted, reemit
from kaflow_engine.operators.join.workspace import DRIVERS, NEVER, JoinWorkspace
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.outcomes.outcomes import FILTERED
from kaflow_engine.operators.rows.reports import due_report, report_rows
from kaflow_engine.operators.rows.schemas import DRIVING, OF_RECORDS, SIDE, TRIGGER
from kaflow_engine.operators.rows.task import BatchContext, Task


def run_join(
    flow: Flow, join: KeyedJoin, batch: BatchContext, rows: pa.Table, task: Task, hand_on: HandOn
) -> pa.Table:
    """Run a join over the rows of one task.

    Args:
        flow: What runs.
        join: Which operator of it.
        batch: Which batch.
        rows: Schema EXCHANGE; rows for others pass through untouched.
        task: The state before the batch; takes the changes.
        hand_on: Takes the rows that leave.

    Returns:
        Schema EXCHANGE.
    """
    mine = pc.equal(rows["target"], target_of(flow, join))
    here = keep(rows, mine)
    found = [rows.filter(pc.invert(mine))]
    counters: Counter[str] = Counter()
    with cursor() as con:
        work = JoinWorkspace(
            con=con,
            flow=flow,
            join=join,
            hand_on=hand_on,
            batch=batch,
            state=StepState(task, join.state, flow.partitions),
            moved=_moved(here),
        )
        found += _run(work, here, counters)
        due = work.state.write()
    report = {
        "counters": dict(counters),
        "due": due_report(work.chain.number, None if due is None else due + join.delay),
        "lookups": lookups(work),
    }
    found.append(report_rows([report]))
    return pa.concat_tables(found)


def _run(work: JoinWorkspace, here: pa.Table, counters: Counter[str]) -> list[pa.Table]:
    """Take rows, and expire what lies behind the watermark.

    Where rows of groups come, those of phase 0 are taken first: they are not late, and meet what is
    about to expire.
    """
    if not work.takes_groups:
        return [*expire(work, counters), *_taken(work, here, counters)]
    here = numbered(work.join, here, drives=work.identity.of_groups, sides=work.of_events)
    timed = pc.less(here["t_phase"], OF_RECORDS)
    first, later = keep(here, timed), keep(here, pc.invert(timed))
    found: list[pa.Table] = []
    if first.num_rows:
        early = replace(work, early=True, moved=_moved(first))
        found += _taken(early, first, counters)
        work.state.show_changes()
    found += expire(work, counters, looks=bool(first.num_rows))
    return [*found, *_taken(replace(work, moved=_moved(later)), later, counters)]


def _taken(work: JoinWorkspace, here: pa.Table, counters: Counter[str]) -> list[pa.Table]:
    found: list[pa.Table] = []
    left = here
    done: frozenset[bytes] = frozenset()
    if only_looks_up(work):
        moved = moved_by(here)
        settled = settle_at_once(work, here, moved, counters)
        released = release(work, moved, settled, counters)
        found = [*settled.rows, *released.rows]
        left, done = released.left, frozenset(released.done.to_pylist())
    if left.num_rows:
        found += _records(work, left, counters, done)
    store_versions(work, here)
    return found


def _moved(here: pa.Table) -> frozenset[int]:
    sides = here.filter(pc.equal(here["kind"], SIDE))["side"]
    return frozenset(pc.unique(sides).to_pylist())


def _records(
    work: JoinWorkspace, here: pa.Table, counters: Counter[str], done: frozenset[bytes]
) -> list[pa.Table]:
    _load_rows(work, here)
    stored, emitted = _load_drivers(work, done)
    _combinations(work, stored)
    met = fates(drop_met(work), FILTERED)
    keyed = "SELECT DISTINCT key FROM d WHERE key IS NOT NULL"
    looked_up = "" if work.driving.reemit else " AND did IN (SELECT did FROM c)"
    load_versions(work, work.keys(keyed + looked_up))
    look_up(work, _places(work))
    failed = choose(work)
    outcome = leave(work, departing(work, "SELECT * FROM g"))
    found = [outcome.rows]
    settled = [outcome.fates, met, fates(unmatched(work), FILTERED)]
    lost, letters = broken(work, failed)
    found += letters
    settled.append(lost)
    gone, rows = hopeless(work, pa.concat_tables(settled), lost)
    found += rows
    settled.append(gone)
    if work.can_wait:
        work.build(
            "waiting",
            "SELECT c.cid, c.did FROM c JOIN d ON d.did = c.did "
            f"WHERE c.void = {NEVER} AND NOT d.hopeless AND c.cid NOT IN (SELECT cid FROM g) "
            "AND c.did NOT IN (SELECT did FROM incoming)",
            lost,
        )
    waits = "SELECT did FROM waiting" if work.can_wait else None
    found.append(settle(work, pa.concat_tables(settled), waits, counters))
    remember(work, stored)
    if work.driving.reemit:
        found.append(reemit(work, outcome.passed, emitted))
    return found


def _load_rows(work: JoinWorkspace, here: pa.Table) -> None:
    """Build r and the new rows of d."""
    batch, ttl = work.batch, work.driving.ttl
    place = f"dense_rank() OVER (ORDER BY {', '.join(TRIGGER)})"
    work.build("r", f"SELECT row_number() OVER () AS rn, *, {place} AS pos FROM incoming", here)
    own = (
        f"d_batch = {batch.batch} AND t_phase = 1 AND t_topic = {work.topic.index} "
        "AND t_part = d_part AND t_off = d_off"
    )
    if work.of_groups:  # of a window the time at which it was closed is what triggered it
        own += f" OR (d_batch = {batch.batch} AND t_phase = 0 AND t_time = d_time)"
    late = f"ts + {ttl} < {work.horizon}"
    lost = "FALSE" if work.waits_keyless else "key IS NULL"
    values = {
        "did": "rn",
        "pos": "pos",
        "fresh": own,
        "hopeless": f"doomed OR forced OR {lost} OR {late}",
        "due": f"ts + {ttl}",
        "members": "coalesce(members, []::BIGINT[])",
        "d": "payload",
        "flags": "0::BIGINT",
        "waited": "0::BIGINT",
    }
    chosen = ", ".join(f"{values.get(name, name)} AS {name}" for name in DRIVERS.names)
    work.run(f"CREATE OR REPLACE TEMP TABLE d AS SELECT {chosen} FROM r WHERE kind = {DRIVING}")


def _load_drivers(work: JoinWorkspace, done: frozenset[bytes]) -> tuple[pa.Table, pa.Table]:
    """Add stored driving records, whose keys have new records, to d.

    Args:
        work: The join.
        done: Keys under which no stored row takes the long way.

    Returns:
        Their waiting rows, and their emitted rows that may be formed again (see Stored).
    """
    sides = list(work.events)
    if work.can_wait or work.driving.reemit:
        sides = list(range(len(work.join.sides)))
    keys: list[bytes] = []
    if work.moved & set(sides):
        keys = work.keys(
            f"SELECT DISTINCT key FROM r WHERE kind = {SIDE} "
            f"AND list_contains({sides}::INTEGER[], side)"
        )
        keys = [key for key in keys if key not in done]
    stored = load_stored(work, keys)
    emitted = stored.rows.slice(0, 0)
    if work.driving.reemit:
        stored, emitted = load_emitted(work, keys, stored)
    if stored.drivers.num_rows:
        work.load("stored", waited(stored.drivers, stored.rows))
        work.run("INSERT INTO d BY NAME SELECT * FROM stored")
    if work.events:
        new = "SELECT DISTINCT key FROM d WHERE key IS NOT NULL AND did > 0"
        load_events(work, work.keys(new))
        pair(work)
    for i in work.events if work.keeps_matches else ():
        work.run(f"CREATE OR REPLACE TEMP TABLE new_pairs{i} AS SELECT * FROM p{i}")
        if not work.final:
            work.load("matches", load_matches(work, i, stored.drivers)[0])
            work.run(f"INSERT INTO p{i} SELECT did, ppos, ord, s FROM matches")
    return stored.rows, emitted


def _combinations(work: JoinWorkspace, stored: pa.Table) -> None:
    combine(work)
    if work.final:
        work.run("DELETE FROM c WHERE did IN (SELECT did FROM d WHERE NOT hopeless)")
    add_waiting(work, row_table(work, stored))


def _places(work: JoinWorkspace) -> str:
    """Where combinations are looked at: where they are formed, then at each dimension record."""
    places = "SELECT cid, q0 AS q FROM c WHERE wid IS NULL"
    dimensions = list(work.dimensions)
    if not work.can_wait or not work.moved & set(dimensions):
        return places
    records = (
        f"SELECT DISTINCT key, pos FROM r WHERE kind = {SIDE} "
        f"AND list_contains({dimensions}::INTEGER[], side)"
    )
    return (
        f"{places} UNION ALL SELECT c.cid, v.pos FROM c JOIN d ON d.did = c.did "
        f"JOIN ({records}) v ON v.key = d.key AND v.pos > c.q0 AND v.pos < c.void "
        "WHERE NOT d.hopeless"
    )
