"""Which driving rows meet which records of event sides, and the combinations that arise."""

import pyarrow as pa

from kaflow_engine.flow.edges import Within
from kaflow_engine.operators.join.row_codec import read_events
from kaflow_engine.operators.join.workspace import NEVER, JoinWorkspace
from kaflow_engine.operators.keyed_state import MATCH
from kaflow_engine.operators.rows.schemas import SIDE
from kaflow_engine.state.keys import entry_keys


def load_events(work: JoinWorkspace, keys: list[bytes]) -> None:
    """Build e<i>: the batch's records of each event side, and stored ones under `keys`."""
    for i in work.events:
        ttl = work.join.sides[i].ttl
        index, _, values = work.state.entries(i, keys)
        stamps, orders, texts = read_events(values)
        columns = "key, pos, ts, ord, s"
        work.build(
            f"e{i}",
            f"SELECT {columns}, ts + {ttl} AS due FROM incoming "
            f"WHERE ts + {ttl} >= {work.horizon} UNION ALL "
            f"SELECT key, pos, ts, {_order(work, i)}, payload, "
            f"ts + {ttl} FROM r WHERE kind = {SIDE} AND side = {i}",
            pa.table(
                {
                    "key": pa.array([keys[n] for n in index], pa.binary()),
                    "pos": pa.repeat(pa.scalar(0, pa.int64()), len(index)),
                    "ts": stamps,
                    "ord": orders,
                    "s": texts,
                }
            ),
        )


def _order(work: JoinWorkspace, side: int) -> str:
    """Return the order of a new record of a side: where it stands, or the number of a row."""
    batch = work.batch.batch
    place = f"{batch}, members[-1]" if side in work.of_events else "t_part, t_off"
    return f"[{batch}, t_time, {place}]"


def load_matches(
    work: JoinWorkspace, side: int, drivers: pa.Table
) -> tuple[pa.Table, pa.BinaryArray]:
    """Read the stored matches of driving records with one event side.

    Args:
        work: The join.
        side: Which one.
        drivers: did, key, suffix.

    Returns:
        (did, ppos 0, ord, s), and the keys of the entries.
    """
    drivers = drivers.filter(drivers["key"].is_valid())
    keys: list[bytes] = drivers["key"].to_pylist()
    starts = [suffix + bytes((side,)) for suffix in drivers["suffix"].to_pylist()]
    index, suffixes, values = work.state.entries(MATCH, keys, starts)
    _, orders, texts = read_events(values)
    places = pa.array(index, pa.int64())
    table = pa.table(
        {
            "did": drivers["did"].take(places),
            "ppos": pa.repeat(pa.scalar(0, pa.int64()), len(index)),
            "ord": orders,
            "s": texts,
        }
    )
    owners = pa.array([keys[i] for i in index], pa.binary())
    return table, entry_keys(owners, MATCH, pa.array(suffixes, pa.binary()))


def pair(work: JoinWorkspace) -> None:
    """Build p<i>: pairs with at least one new member.

    Their times are near enough; the one that was processed first had not expired at the start of
    the batch.
    """
    horizon = work.horizon
    for i in work.events:
        near = _near(work.join.sides[i].within)
        work.run(
            f"""
            CREATE OR REPLACE TEMP TABLE p{i} AS
            SELECT d.did, greatest(d.pos, e.pos) AS ppos, e.ord, e.s
            FROM d JOIN e{i} e ON d.key = e.key
            WHERE (d.pos > 0 OR e.pos > 0)
              AND {near}
              AND CASE WHEN e.pos <= d.pos THEN e.due >= {horizon}
                       ELSE d.due >= {horizon} AND NOT d.hopeless END
            """
        )


def _near(within: Within | None) -> str:
    """Return a condition over d and an event e: their times are near enough for a match."""
    if within is None:
        return "CASE WHEN d.ts <= e.ts THEN e.ts <= d.due ELSE d.ts <= e.due END"
    return f"e.ts BETWEEN d.ts - {within.before} AND d.ts + {within.after}"


def combine(work: JoinWorkspace) -> None:
    """Build c: (cid, did, q0, void, wid, o<i>, s<i>) for combinations with a new member.

    A combination exists since the place of its last member; it has NULL for a side only before the
    side's first match, which is the place `void`, where it is replaced.
    """
    columns = [f"x{i}.ord AS o{i}, x{i}.s AS s{i}" for i in work.events]
    places = ", ".join(["d.pos", *(f"x{i}.ppos" for i in work.events)])
    voids = [f"CASE WHEN x{i}.s IS NULL THEN f{i}.first END" for i in work.events]
    void = f"coalesce(least({', '.join(voids)}), {NEVER})" if voids else str(NEVER)
    joins = ""
    for i in work.events:
        joins += f"""
            JOIN (SELECT did, ppos, ord, s FROM p{i}
                  UNION ALL SELECT did, pos, NULL, NULL FROM d) x{i} ON x{i}.did = d.did
            LEFT JOIN (SELECT did, min(ppos) AS first FROM p{i} GROUP BY did) f{i}
              ON f{i}.did = d.did"""
    conditions = [
        f"(x{i}.s IS NOT NULL OR q0 < coalesce(f{i}.first, {NEVER}))" for i in work.events
    ]
    where = " AND ".join(["q0 > 0", *conditions])
    chosen = ", ".join(["d.did", f"greatest({places}) AS q0", f"{void} AS void", *columns])
    work.run(
        f"""
        CREATE OR REPLACE TEMP TABLE c AS
        SELECT row_number() OVER () AS cid, *, NULL::BIGINT AS wid
        FROM (SELECT {chosen} FROM d {joins} WHERE {where})
        """
    )


def drop_met(work: JoinWorkspace) -> list[int]:
    """Drop the rows of c with matches of sides that must not match; return whose these are."""
    found: list[int] = []
    for i in work.anti:
        work.run(f"DELETE FROM c WHERE s{i} IS NOT NULL")
        found += work.table(f"SELECT DISTINCT did FROM p{i}")["did"].to_pylist()
    return found


def combine_stored(work: JoinWorkspace, only: str = "TRUE") -> None:
    """Build c from driving rows and their stored matches, at place 0; NULL without a match."""
    columns = "".join(f", p{i}.ord AS o{i}, p{i}.s AS s{i}" for i in work.events)
    joins = "".join(f" LEFT JOIN p{i} ON p{i}.did = d.did" for i in work.events)
    work.run(
        f"""
        CREATE OR REPLACE TEMP TABLE c AS
        SELECT row_number() OVER () AS cid, *, NULL::BIGINT AS wid
        FROM (SELECT d.did, 0::BIGINT AS q0, {NEVER} AS void{columns} FROM d{joins} WHERE {only})
        """
    )


def add_waiting(work: JoinWorkspace, waiting: pa.Table) -> None:
    """Add stored waiting rows to c; a new match for one of their open sides voids them."""
    if not waiting.num_rows:
        return
    work.load("w", waiting)
    sides = "".join(f", o{i}, s{i}" for i in work.events)
    work.run(
        f"INSERT INTO c (cid, did, q0, void, wid{sides}) "
        f"SELECT -1 - wid, did, 0, {void_of(work)}, wid{sides} FROM w"
    )


def void_of(work: JoinWorkspace) -> str:
    """Return SQL for the place at which a row of table w is replaced by rows with a match."""
    voids = [
        f"(SELECT min(ppos) FROM p{i} WHERE p{i}.did = w.did AND w.s{i} IS NULL)"
        for i in work.events
    ]
    return f"coalesce(least({', '.join(voids)}), {NEVER})" if voids else str(NEVER)
