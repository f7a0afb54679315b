"""Dimension sides: their versions, and what a row sees of them at a place."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.bench import Bench
from kaflow_engine.operators.keyed import stamp_suffix
from kaflow_engine.operators.schemas import SIDE
from kaflow_engine.state.keys import entry_key

_STAMP = struct.Struct(">q")


def load_versions(bench: Bench, keys: list[bytes]) -> None:
    """Build v<j> (key, pos, ts, s): stored versions under `keys` at place 0, then the batch's."""
    for j in bench.dimensions:
        own = f"SELECT key, pos, ts, payload FROM r WHERE kind = {SIDE} AND side = {j}"
        more = f" UNION ALL {own}" if j in bench.moved else ""
        bench.build(f"v{j}", f"SELECT key, pos, ts, s FROM incoming{more}", _stored(bench, j, keys))


def _stored(bench: Bench, j: int, keys: Sequence[bytes]) -> pa.Table:
    if bench.step.sides[j].lookup == "as_of":
        index, _, found = bench.state.entries(j, keys)
        owners = pa.array([keys[i] for i in index], pa.binary())
        values = pa.array(found, pa.binary())
    else:
        values = pa.array(bench.state.values([entry_key(key, j) for key in keys]), pa.binary())
        owners = pa.array(keys, pa.binary()).filter(values.is_valid())
        values = values.drop_null()
    stamps, texts = _split(values)
    return pa.table({"key": owners, "pos": pa.repeat(0, len(values)), "ts": stamps, "s": texts})


def _split(values: pa.BinaryArray) -> tuple[pa.Array, pa.Array]:
    """Split stored versions into event times and texts; an empty text is a tombstone."""
    if not len(values):
        return pa.array([], pa.int64()), pa.array([], pa.string())
    heads = pc.binary_slice(values, 0, 8)
    joined = b"".join(heads.to_pylist())
    stamps = np.frombuffer(joined, dtype=">i8").astype(np.int64)
    texts = pc.binary_slice(values, 8, 1 << 31).cast(pa.string())
    return pa.array(stamps), pc.if_else(pc.equal(texts, ""), None, texts)


def store_versions(bench: Bench) -> None:
    """Write the batch's dimension records to the state."""
    for j in bench.dimensions:
        if j not in bench.moved:
            continue
        side = bench.step.sides[j]
        group = "key, ts" if side.lookup == "as_of" else "key"
        rows = bench.rows(
            f"SELECT key, arg_max(ts, pos), arg_max(coalesce(payload, ''), pos) FROM r "
            f"WHERE kind = {SIDE} AND side = {j} GROUP BY {group}"
        )
        if side.lookup == "as_of":
            for key, ts, text in rows:
                entry = entry_key(key, j, stamp_suffix(ts))
                bench.state.put(entry, _STAMP.pack(ts) + text.encode())
            _prune(bench, j, sorted({key for key, _, _ in rows}))
            continue
        for key, ts, text in rows:
            if text:
                bench.state.put(entry_key(key, j), _STAMP.pack(ts) + text.encode())
            else:
                bench.state.delete(entry_key(key, j))


def _prune(bench: Bench, j: int, keys: list[bytes]) -> None:
    """Delete stored versions that a newer one has put out of reach."""
    limit = bench.batch.horizon - bench.step.sides[j].history
    bench.load("stored", _stored(bench, j, keys))
    for key, ts in bench.rows(
        f"""
        SELECT s.key, s.ts FROM stored s
        JOIN (SELECT key, max(ts) AS base FROM (
                SELECT key, ts FROM stored
                UNION ALL SELECT key, ts FROM r WHERE kind = {SIDE} AND side = {j})
              WHERE ts <= {limit} GROUP BY key) b ON b.key = s.key AND s.ts < b.base
        """
    ):
        bench.state.delete(entry_key(key, j, stamp_suffix(ts)))


def look_up(bench: Bench, places: str) -> None:
    """Build f: (rn, cid, did, q, d, s0, s1, …) from c, d and the dimension versions.

    A value whose `ts` lies after `due` counts as absent for a row that is formed after its driving
    record was processed.

    Args:
        bench: Where c, d and v<j> stand.
        places: SELECT of (cid, q): where each combination is looked at.
    """
    events = "".join(f", c.s{i}" for i in bench.events)
    found = f"""
        SELECT row_number() OVER () AS rn, c.cid, d.did, x.q, d.key, d.ts, d.due, d.d,
               (x.q > d.pos OR NOT d.fresh) AS later{events}
        FROM ({places}) x JOIN c ON c.cid = x.cid JOIN d ON d.did = c.did
        """
    steps = [f"f AS MATERIALIZED ({found})"]
    name = "f"
    for j in bench.dimensions:
        of = _as_of if bench.step.sides[j].lookup == "as_of" else _current
        steps.append(f"f{j} AS ({of(bench, j, name)})")
        name = f"f{j}"
    bench.build("f", f"WITH {', '.join(steps)} SELECT * FROM {name}")


def _current(bench: Bench, j: int, name: str) -> str:
    join = "ASOF LEFT JOIN" if j in bench.moved else "LEFT JOIN"
    on = f"f.key = v.key{' AND f.q >= v.pos' if j in bench.moved else ''}"
    return (
        f"SELECT f.*, CASE WHEN f.later AND v.ts > f.due THEN NULL ELSE v.s END AS s{j} "
        f"FROM {name} f {join} v{j} v ON {on}"
    )


def _as_of(bench: Bench, j: int, name: str) -> str:
    """The newest version with ts <= the row's, unless one beyond `history` has followed it."""
    limit = bench.batch.horizon - bench.step.sides[j].history
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
