"""Combinations that may leave: which are complete, and the rows they make."""

import pyarrow as pa

from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS, BadRow, guarded
from kaflow_engine.operators.rows.layout import join_rows
from kaflow_engine.operators.rows.partitioning import keyless_parts, parts_of
from kaflow_engine.operators.rows.schemas import ORIGIN, TRIGGER

OPEN_MEMBER = "[-1, -1, -1, -1]::BIGINT[]"


def choose(work: JoinWorkspace, every: bool = False) -> list[BadRow]:
    """Build g: of f, the first place at which each combination is complete, with all rows that are
    so there.

    Args:
        work: Where f and d stand.
        every: All such places instead of the first.

    Returns:
        Rows of f on which the required columns cannot be computed.
    """
    forced = "did IN (SELECT did FROM d WHERE forced)"
    ready = f"{inner_matched(work)} AND did NOT IN (SELECT did FROM d WHERE doomed)"
    first = ""
    if work.can_wait and not every:
        first = " QUALIFY q = min(q) OVER (PARTITION BY cid)"
    if work.join.require is None or work.final:
        work.build("g", f"SELECT * FROM f WHERE {ready}{first}")
        return []
    sides = ", ".join(f"s{i}" for i in range(len(work.join.sides)))
    candidates = f"SELECT rn, d, {sides} FROM f WHERE {ready}"
    typed = join_rows(work.join, work.batch.batch_time)
    complete = f"SELECT rn FROM ({typed}) WHERE {work.join.require}"
    passed = f"(rn IN (SELECT rn FROM incoming) OR {forced})"
    chosen = f"SELECT * FROM f WHERE {ready} AND {passed}{first}"
    try:
        work.build("g", f"WITH rows AS ({candidates}), incoming AS ({complete}) {chosen}")
    except DATA_ERRORS:
        found, failed = guarded(complete, work.table(candidates))
        work.build("g", chosen, found)
        return failed
    return []


def unmatched(work: JoinWorkspace) -> list[int]:
    """Return the driving rows of d that go nowhere, because an INNER side has no match; none where
    they wait for one."""
    if work.driving.waits:
        return []
    return work.table("SELECT did FROM c WHERE cid NOT IN (SELECT cid FROM g)")["did"].to_pylist()


def departing(
    work: JoinWorkspace, chosen: str, *, expired: bool = False, forced: bool = False
) -> pa.Table:
    """Return rows of f as `leaving.leave` wants them.

    Args:
        work: Where f, c, d and r stand.
        chosen: SELECT of rows of f.
        expired: They leave because their time is up, before all records of the batch.
        forced: They leave with what there is.
    """
    sides = "".join(f", g.s{i}" for i in range(len(work.join.sides)))
    members = "".join(
        f", coalesce({'c' if i in work.events else 'g'}.o{i}, {OPEN_MEMBER})"
        for i in work.join.parting
    )
    if expired:
        due = f"d.due + {work.join.delay}"
        triggers = ["0", due, "0", str(work.topic.index), "d.d_part", "d.d_off"]
        trigger = ", ".join(f"{sql} AS {name}" for sql, name in zip(triggers, TRIGGER, strict=True))
        join = ""
    else:
        trigger = ", ".join(f"t.{name}" for name in TRIGGER)
        first = ", ".join(f"any_value({name}) AS {name}" for name in TRIGGER)
        join = f"JOIN (SELECT pos, {first} FROM r GROUP BY pos) t ON t.pos = g.q"
    origin = ", ".join(f"d.{name}" for name in ORIGIN)
    counted = "d.counted"
    if work.join.parting and not work.last and work.ledger is None:
        counted = (
            "(d.counted AND g.q = d.pos AND "
            "row_number() OVER (PARTITION BY g.did, g.q ORDER BY members) = 1)"
        )
    rows = work.table(
        f"""
        SELECT g.rn, g.did, d.key, g.d{sides}, {trigger}, {origin}, d.ts, d.raw,
               list_concat(d.members{members}) AS members, {counted} AS counted,
               d.forced OR {str(forced).upper()} AS forced
        FROM ({chosen}) g JOIN d ON d.did = g.did JOIN c ON c.cid = g.cid {join}
        """
    )
    parts = work.flow.partitions
    keyless = keyless_parts(work.flow, work.join, rows["d_part"], rows["d_off"])
    return rows.append_column("part", parts_of(rows["key"], keyless, parts))


def inner_matched(work: JoinWorkspace) -> str:
    """Return a condition over f: all INNER sides have a match."""
    return " AND ".join(["TRUE", *(f"s{i} IS NOT NULL" for i in work.join.inner)])
