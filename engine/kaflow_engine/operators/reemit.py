"""`on_dimension_update: reemit`: emitted rows are formed again when a dimension changes."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.bench import NEVER, Bench
from kaflow_engine.operators.departures import choose, departing
from kaflow_engine.operators.keyed import EMITTED
from kaflow_engine.operators.leaving import leave
from kaflow_engine.operators.pairing import void_of
from kaflow_engine.operators.schemas import SIDE
from kaflow_engine.operators.stored import (
    StoredDriver,
    StoredRow,
    driver_suffix,
    member_suffix,
    read_driver,
    read_row,
    row_table,
    row_value,
)
from kaflow_engine.operators.versions import look_up
from kaflow_engine.state.keys import entry_key

_DIGEST = "md5(coalesce(hex(out_key), '-') || hex(value))"


def load_emitted(
    bench: Bench, keys: Sequence[bytes], drivers: list[StoredDriver]
) -> list[StoredRow]:
    """Read emitted rows under join keys; adds their driving records to `drivers`."""
    horizon = bench.batch.horizon - bench.plan.driving.ttl
    known = {(driver.key, driver.suffix): driver.did for driver in drivers}
    rows: list[StoredRow] = []
    for i, suffix, value in zip(*bench.state.entries(EMITTED, keys), strict=True):
        place = (keys[i], suffix[: bench.driver_width])
        if place not in known:
            driver = read_driver(-1 - len(drivers), keys[i], suffix, value)
            if driver.ts < horizon:
                continue
            known[place] = driver.did
            drivers.append(driver)
        rows.append(read_row(known[place], suffix, value))
    return rows


def reemit(bench: Bench, emitted: pa.Table, stored: Sequence[StoredRow]) -> pa.Table:
    """Form emitted rows again at each new dimension record of their key.

    Args:
        bench: Tables as at the end of the step.
        emitted: What this batch emitted: rn (of g), out_key, value.
        stored: What earlier batches emitted.

    Returns:
        Rows that differ from what was emitted last; schema EXCHANGE.
    """
    sides = "".join(f", o{i}, s{i}" for i in bench.events)
    own = "".join(f", c.o{i}, c.s{i}" for i in bench.events)
    bench.load("emitted", emitted)
    bench.run(
        f"CREATE OR REPLACE TEMP TABLE again AS SELECT c.cid, c.did, g.q AS q0, c.void, "
        f"NULL::BIGINT AS wid{own}, {_DIGEST} AS last "
        "FROM emitted e JOIN g ON g.rn = e.rn JOIN c ON c.cid = g.cid JOIN d ON d.did = c.did "
        "WHERE NOT d.hopeless"
    )
    if stored:
        bench.load("w", row_table(bench, stored))
        bench.load(
            "lasts",
            pa.table({"wid": range(len(stored)), "last": [row.last for row in stored]}),
        )
        bench.run(
            f"INSERT INTO again (cid, did, q0, void, wid{sides}, last) "
            f"SELECT {-NEVER} + wid, did, 0, {void_of(bench)}, wid{sides}, last "
            "FROM w JOIN lasts USING (wid)"
        )
    bench.run("CREATE OR REPLACE TEMP TABLE c AS SELECT * FROM again")
    look_up(bench, _places(bench))
    choose(bench, every=True)
    rows = departing(bench, "SELECT * FROM g")
    outcome = leave(bench, rows)
    bench.load("formed", outcome.emitted)
    bench.run(
        f"CREATE OR REPLACE TEMP TABLE changed AS SELECT f.rn, f.cid, f.q, {_DIGEST} AS digest "
        "FROM formed JOIN f ON f.rn = formed.rn JOIN again a ON a.cid = f.cid "
        f"QUALIFY {_DIGEST} <> lag({_DIGEST}, 1, a.last) OVER (PARTITION BY f.cid ORDER BY f.q)"
    )
    _remember(bench, stored)
    kept = bench.table("SELECT rn FROM changed")["rn"]
    ready = pc.is_in(outcome.emitted["rn"], kept.combine_chunks())
    count = outcome.emitted.num_rows
    # dead letters follow the finished rows
    return pa.concat_tables([outcome.rows.slice(0, count).filter(ready), outcome.rows.slice(count)])


def _places(bench: Bench) -> str:
    dimensions = list(bench.dimensions)
    records = (
        f"SELECT DISTINCT key, pos FROM r WHERE kind = {SIDE} AND payload IS NOT NULL "
        f"AND list_contains({dimensions}::INTEGER[], side)"
    )
    return (
        "SELECT c.cid, v.pos AS q FROM c JOIN d ON d.did = c.did "
        f"JOIN ({records}) v ON v.key = d.key AND v.pos > c.q0 AND v.pos < c.void"
    )


def _remember(bench: Bench, stored: Sequence[StoredRow]) -> None:
    sides = "".join(f", a.o{i}, a.s{i}" for i in bench.events)
    rows = bench.table(
        f"SELECT d.*{sides}, a.wid, a.void, coalesce(n.digest, a.last) AS last, "
        "n.digest IS NOT NULL AS moved FROM again a JOIN d ON d.did = a.did LEFT JOIN "
        "(SELECT cid, arg_max(digest, q) AS digest FROM changed GROUP BY cid) n ON n.cid = a.cid"
    )
    for row in rows.to_pylist():
        members = [row[f"o{i}"] for i in bench.events]
        texts = [row[f"s{i}"] for i in bench.events]
        suffix = driver_suffix(row) + member_suffix(members)
        if row["wid"] is not None:
            suffix = stored[row["wid"]].suffix
        entry = entry_key(row["key"], EMITTED, suffix)
        if row["void"] < NEVER:
            bench.state.delete(entry, row["due"])
        elif row["wid"] is None or row["moved"]:
            bench.state.put(entry, row_value(row, members, texts, row["last"]), row["due"])
