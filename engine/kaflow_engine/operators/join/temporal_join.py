"""Dimension sides: their versions, and what a row sees of them at a place.

Under a join key there is one value, or there are several rows, which their own key tells apart.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.pick import pick
from kaflow_engine.operators.join.workspace import NEVER, JoinWorkspace
from kaflow_engine.operators.keyed_state import stamp_suffix
from kaflow_engine.operators.rows.row_order import last_of_each_key, order_of
from kaflow_engine.operators.rows.row_text import from_text, unpack
from kaflow_engine.operators.rows.schemas import SIDE, TRIGGER
from kaflow_engine.state.binary_columns import fixed, heads, joined
from kaflow_engine.state.keys import entry_key, entry_keys

_STAMP = np.dtype([("ts", ">i8")])
"""The head of a stored version."""


def load_versions(work: JoinWorkspace, keys: list[bytes]) -> None:
    """Build v<j> (key, pos, ts, s): stored versions under `keys` at place 0, then the batch's.

    Where there are several rows, those have `nr`, which stands in the order of their keys, and
    `until`, the place at which the next version of the row comes.
    """
    for j in work.dimensions:
        if j in work.several:
            _load_rows(work, j, keys)
            continue
        own = f"SELECT key, pos, ts, payload FROM r WHERE kind = {SIDE} AND side = {j}"
        more = f" UNION ALL {own}" if j in work.moved else ""
        work.build(f"v{j}", f"SELECT key, pos, ts, s FROM incoming{more}", _stored(work, j, keys))


def _load_rows(work: JoinWorkspace, j: int, keys: Sequence[bytes]) -> None:
    columns = work.join.sides[j].rows or ()
    index, suffixes, found = work.state.entries(j, keys)
    values = pa.array(found, pa.binary())
    stored = pa.table(
        {
            "key": pa.array([keys[i] for i in index], pa.binary()),
            "own": pa.array(suffixes, pa.binary()),
            "pos": pa.repeat(0, len(index)),
            "rn": pa.repeat(0, len(index)),
            "ts": _stamps(values),
            "s": _texts(values),
        }
    )
    batch = (
        "SELECT key, value AS own, pos, rn, ts, payload AS s FROM r "
        f"WHERE kind = {SIDE} AND side = {j}"
    )
    parts = [f"{from_text(f'l[{i}]', c.type)} ASC NULLS LAST" for i, c in enumerate(columns, 1)]
    by = ", ".join([*parts, "own"])
    work.build(
        f"v{j}",
        f"SELECT key, pos, ts, s, dense_rank() OVER (ORDER BY {by}) AS nr, "
        f"lead(pos, 1, {NEVER}) OVER (PARTITION BY key, own ORDER BY pos, rn) AS until "
        f"FROM (SELECT *, {unpack('decode(own)')} AS l FROM "
        f"(SELECT * FROM incoming UNION ALL {batch}))",
        stored,
    )


def current_texts(work: JoinWorkspace, j: int, keys: pa.BinaryArray) -> pa.StringArray:
    """Return the text of the value that a dimension has under each key, null without one."""
    return _texts(work.state.look_up(j, keys))


def current_versions(
    work: JoinWorkspace, j: int, keys: pa.BinaryArray
) -> tuple[pa.Array, pa.StringArray]:
    """Return event time and text of the value under each key; the text is null without one."""
    nothing = bytes(_STAMP.itemsize)
    return read_versions(pc.fill_null(work.state.look_up(j, keys), nothing))


def _stored(work: JoinWorkspace, j: int, keys: Sequence[bytes]) -> pa.Table:
    if work.join.sides[j].lookup == "as_of":
        index, _, found = work.state.entries(j, keys)
        owners = pa.array([keys[i] for i in index], pa.binary())
        values = pa.array(found, pa.binary())
    else:
        values = work.state.look_up(j, pa.array(keys, pa.binary()))
        owners = pa.array(keys, pa.binary()).filter(values.is_valid())
        values = values.drop_null()
    return pa.table(
        {
            "key": owners,
            "pos": pa.repeat(0, len(owners)),
            "ts": _stamps(values),
            "s": _texts(values),
        }
    )


def read_versions(values: pa.BinaryArray) -> tuple[pa.Array, pa.StringArray]:
    """Return event times and texts of stored versions; the text of a tombstone is null."""
    return _stamps(values), _texts(values)


def _stamps(values: pa.BinaryArray) -> pa.Array:
    """Return the event times of stored versions."""
    return pa.array(heads(values, _STAMP)["ts"].astype(np.int64))


def _texts(values: pa.BinaryArray) -> pa.StringArray:
    """Return the texts of stored versions; that of a tombstone is empty, which becomes null."""
    texts = pc.binary_slice(values, _STAMP.itemsize, 1 << 31).cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _versions(stamps: pa.Array, texts: pa.Array) -> pa.BinaryArray:
    """Put event times and texts together as versions are stored; null where the text is."""
    stamped = np.empty(len(stamps), _STAMP)
    stamped["ts"] = stamps.to_numpy(zero_copy_only=False)
    return joined(fixed(stamped), texts.cast(pa.binary()))


def store_versions(work: JoinWorkspace, here: pa.Table) -> None:
    """Write the batch's dimension records, which are among the rows of the join, to the state."""
    for j in work.dimensions:
        if j not in work.moved:
            continue
        rows = here.filter(pc.and_(pc.equal(here["kind"], SIDE), pc.equal(here["side"], j)))
        if work.join.sides[j].lookup == "as_of":
            _store_history(work, j, rows)
            continue
        if j in work.several:
            _store_rows(work, j, rows)
            continue
        last = last_of_each_key(rows).combine_chunks()
        values = _versions(last["ts"].combine_chunks(), last["payload"].combine_chunks())
        work.state.change(entry_keys(last["key"].combine_chunks(), j), values)


def _store_rows(work: JoinWorkspace, j: int, rows: pa.Table) -> None:
    rows = pick(rows, pa.array(order_of(rows, TRIGGER))).combine_chunks()
    entries = entry_keys(rows["key"].combine_chunks(), j, rows["value"].combine_chunks())
    last = {entry: place for place, entry in enumerate(entries.to_pylist())}
    places = pa.array(sorted(last.values()), pa.int64())
    found = pick(rows, places).combine_chunks()
    values = _versions(found["ts"].combine_chunks(), found["payload"].combine_chunks())
    work.state.change(entries.take(places), values)


def _store_history(work: JoinWorkspace, j: int, rows: pa.Table) -> None:
    kept = work.rows(
        f"SELECT key, ts, arg_max(coalesce(payload, ''), pos) FROM r "
        f"WHERE kind = {SIDE} AND side = {j} GROUP BY key, ts"
    )
    for key, ts, text in kept:
        value = ts.to_bytes(_STAMP.itemsize, "big", signed=True) + text.encode()
        work.state.put(entry_key(key, j, stamp_suffix(ts)), value)
    _prune(work, j, sorted(pc.unique(rows["key"]).to_pylist()))


def _prune(work: JoinWorkspace, j: int, keys: list[bytes]) -> None:
    """Delete stored versions that a newer one has put out of reach."""
    limit = work.horizon - work.join.sides[j].keep
    work.load("stored", _stored(work, j, keys))
    for key, ts in work.rows(
        f"""
        SELECT s.key, s.ts FROM stored s
        JOIN (SELECT key, max(ts) AS base FROM (
                SELECT key, ts FROM stored
                UNION ALL SELECT key, ts FROM r WHERE kind = {SIDE} AND side = {j})
              WHERE ts <= {limit} GROUP BY key) b ON b.key = s.key AND s.ts < b.base
        """
    ):
        work.state.delete(entry_key(key, j, stamp_suffix(ts)))


def look_up(work: JoinWorkspace, places: str) -> None:
    """Build f: (rn, cid, did, q, d, s0, s1, …) from c, d and the dimension versions.

    A value whose `ts` lies after `due` counts as absent for a row that is formed after its driving
    record was processed. Where several rows have the join key, f has one for each, and which one it
    is in their order as the member o<j>.

    Args:
        work: Where c, d and v<j> stand.
        places: SELECT of (cid, q): where each combination is looked at.
    """
    members = "".join(f", c.s{i}" for i in work.events)
    if any(work.join.sides[j].lookup == "before" for j in work.dimensions):
        members = f", x.q - (x.q = d.pos AND d.fresh)::BIGINT AS before{members}"
    found = f"""
        SELECT row_number() OVER () AS rn, c.cid, d.did, x.q, d.key, d.ts, d.due, d.d,
               (x.q > d.pos OR NOT d.fresh) AS later{members}
        FROM ({places}) x JOIN c ON c.cid = x.cid JOIN d ON d.did = c.did
        """
    steps = [f"f AS MATERIALIZED ({found})"]
    name = "f"
    for j in work.dimensions:
        if j in work.several:
            steps.append(f"f{j} AS MATERIALIZED ({_rows_of(work, j, name)})")
        else:
            of = _as_of if work.join.sides[j].lookup == "as_of" else _current
            steps.append(f"f{j} AS ({of(work, j, name)})")
        name = f"f{j}"
    work.build("f", f"WITH {', '.join(steps)} SELECT * FROM {name}")


def _current(work: JoinWorkspace, j: int, name: str) -> str:
    """The newest version at the row's place, which a window over both finds.

    An ASOF LEFT JOIN of DuckDB would say the same, but its 1.5.6 gives some rows that have no match
    the version of another key.
    """
    value = "CASE WHEN f.later AND v.ts > f.due THEN NULL ELSE v.s END"
    found = f"SELECT f.*, {value} AS s{j} FROM {name} f LEFT JOIN"
    if j not in work.moved:
        return f"{found} v{j} v ON f.key = v.key"
    newest = "last_value(v IGNORE NULLS) OVER (PARTITION BY key ORDER BY pos, rn NULLS FIRST)"
    return (
        f"{found} (SELECT rn, unnest(v) FROM (SELECT rn, {newest} AS v FROM ("
        f"SELECT key, pos, NULL::BIGINT AS rn, struct_pack(s := s, ts := ts) AS v FROM v{j} "
        f"UNION ALL SELECT key, {_place(work, j)}, rn, NULL FROM {name} f) "
        "QUALIFY rn IS NOT NULL)) v ON v.rn = f.rn"
    )


def _place(work: JoinWorkspace, j: int) -> str:
    """Where a row looks: of its own record, at what that changes itself or before it."""
    return "f.before" if work.join.sides[j].lookup == "before" else "f.q"


def _rows_of(work: JoinWorkspace, j: int, name: str) -> str:
    """All rows with the join key; equality and comparisons alone, which DuckDB joins by hashing."""
    place = "row_number() OVER (PARTITION BY f.rn ORDER BY v.nr)"
    at = _place(work, j)
    there = f" AND v.pos <= {at} AND {at} < v.until" if j in work.moved else ""
    latest = f"CASE WHEN f.later THEN f.due ELSE {NEVER} END"
    return (
        f"SELECT row_number() OVER () AS rn, f.* EXCLUDE (rn), v.s AS s{j}, "
        f"CASE WHEN v.s IS NOT NULL THEN [0, 0, 0, {place}]::BIGINT[] END AS o{j} "
        f"FROM {name} f LEFT JOIN (SELECT * FROM v{j} WHERE s IS NOT NULL) v "
        f"ON f.key = v.key{there} AND v.ts <= {latest}"
    )


def _as_of(work: JoinWorkspace, j: int, name: str) -> str:
    """The newest version with ts <= the row's, unless one beyond `history` has followed it."""
    limit = work.horizon - work.join.sides[j].keep
    return f"""
        SELECT f.*, CASE WHEN a.base IS NOT NULL AND (a.seen).ts < a.base THEN NULL
                         ELSE (a.seen).s END AS s{j}
        FROM {name} f LEFT JOIN (
          SELECT f.rn,
                 arg_max(struct_pack(s := v.s, ts := v.ts), [v.ts, v.pos])
                   FILTER (v.ts <= f.ts AND NOT (f.later AND v.ts > f.due)) AS seen,
                 max(v.ts) FILTER (v.ts <= {limit}) AS base
          FROM {name} f JOIN v{j} v ON v.key = f.key AND v.pos <= f.q
          GROUP BY f.rn) a ON a.rn = f.rn
        """
