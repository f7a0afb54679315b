"""`on_dimension_update: reemit`: emitted rows are formed again when a dimension changes."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.join.emit import leave
from kaflow_engine.operators.join.interval_join import void_of
from kaflow_engine.operators.join.readiness import choose, departing
from kaflow_engine.operators.join.row_codec import (
    Stored,
    driver_values,
    extras,
    read_drivers,
    row_suffixes,
    row_table,
)
from kaflow_engine.operators.join.temporal_join import look_up
from kaflow_engine.operators.join.workspace import NEVER, JoinWorkspace
from kaflow_engine.operators.keyed_state import EMITTED
from kaflow_engine.operators.rows.schemas import SIDE
from kaflow_engine.state.keys import entry_keys

_FINISHED = ["rn", "out_key", "value", "headers"]
_DIGEST = "md5(coalesce(hex(out_key), '-') || hex(value) || coalesce(headers, ''))"


def load_emitted(
    work: JoinWorkspace, keys: Sequence[bytes], stored: Stored
) -> tuple[Stored, pa.Table]:
    """Read emitted rows under join keys.

    Returns:
        `stored` with the driving records of these rows, and the rows (see Stored).
    """
    ttl = work.driving.ttl
    horizon = work.horizon - ttl
    owners = zip(*(stored.drivers[name].to_pylist() for name in ("key", "suffix")), strict=True)
    known = dict(zip(owners, stored.drivers["did"].to_pylist(), strict=True))
    index, suffixes, values = work.state.entries(EMITTED, keys)
    first = min(known.values(), default=0) - 1
    found = read_drivers(work.identity, ttl, first, [keys[i] for i in index], suffixes, values)
    found = found.filter(pc.greater_equal(found["ts"], horizon))
    dids: list[int] = []
    new: list[int] = []
    for place, (key, suffix, did) in enumerate(
        zip(*(found[name].to_pylist() for name in ("key", "suffix", "did")), strict=True)
    ):
        owner = (key, suffix[: work.identity.width])
        if owner not in known:
            known[owner] = did
            new.append(place)
        dids.append(known[owner])
    drivers = found.drop_columns("extra").take(pa.array(new, pa.int64()))
    rows = found.select(["did", "suffix", "extra"]).set_column(0, "did", pa.array(dids, pa.int64()))
    together = pa.concat_tables([stored.drivers, drivers])
    return Stored(drivers=together, rows=stored.rows), rows


def reemit(work: JoinWorkspace, emitted: pa.Table, stored: pa.Table) -> pa.Table:
    """Form emitted rows again at each new dimension record of their key.

    Args:
        work: Tables as at the end of the join.
        emitted: What this batch emitted: rn (of g), out_key, value, headers, and more.
        stored: What earlier batches emitted.

    Returns:
        Rows that differ from what was emitted last; schema EXCHANGE.
    """
    sides = "".join(f", o{i}, s{i}" for i in work.events)
    own = "".join(f", c.o{i}, c.s{i}" for i in work.events)
    work.load("emitted", emitted.select(_FINISHED))
    work.run(
        f"CREATE OR REPLACE TEMP TABLE again AS SELECT c.cid, c.did, g.q AS q0, c.void, "
        f"NULL::BIGINT AS wid{own}, {_DIGEST} AS last "
        "FROM emitted e JOIN g ON g.rn = e.rn JOIN c ON c.cid = g.cid JOIN d ON d.did = c.did "
        "WHERE NOT d.hopeless"
    )
    if stored.num_rows:
        work.load("w", row_table(work, stored))
        work.run(
            f"INSERT INTO again (cid, did, q0, void, wid{sides}, last) "
            f"SELECT {-NEVER} + wid, did, 0, {void_of(work)}, wid{sides}, last FROM w"
        )
    work.run("CREATE OR REPLACE TEMP TABLE c AS SELECT * FROM again")
    look_up(work, _places(work))
    choose(work, every=True)
    rows = departing(work, "SELECT * FROM g")
    outcome = leave(work, rows, charged=False)
    work.load("formed", outcome.passed.select(_FINISHED))
    work.run(
        f"CREATE OR REPLACE TEMP TABLE changed AS SELECT f.rn, f.cid, f.q, {_DIGEST} AS digest "
        "FROM formed JOIN f ON f.rn = formed.rn JOIN again a ON a.cid = f.cid "
        f"QUALIFY {_DIGEST} <> lag({_DIGEST}, 1, a.last) OVER (PARTITION BY f.cid ORDER BY f.q)"
    )
    _remember(work, stored)
    kept = work.table("SELECT rn FROM changed")["rn"]
    ready = pc.is_in(outcome.passed["rn"], kept.combine_chunks())
    return outcome.rows.filter(ready)


def _places(work: JoinWorkspace) -> str:
    dimensions = list(work.dimensions)
    records = (
        f"SELECT DISTINCT key, pos FROM r WHERE kind = {SIDE} AND payload IS NOT NULL "
        f"AND list_contains({dimensions}::INTEGER[], side)"
    )
    return (
        "SELECT c.cid, v.pos AS q FROM c JOIN d ON d.did = c.did "
        f"JOIN ({records}) v ON v.key = d.key AND v.pos > c.q0 AND v.pos < c.void"
    )


def _remember(work: JoinWorkspace, stored: pa.Table) -> None:
    sides = "".join(f", a.o{i}, a.s{i}" for i in work.events)
    rows = work.table(
        f"SELECT d.* REPLACE (0 AS flags){sides}, a.wid, a.void, "
        "coalesce(n.digest, a.last) AS last, n.digest IS NOT NULL AS moved "
        "FROM again a JOIN d ON d.did = a.did LEFT JOIN "
        "(SELECT cid, arg_max(digest, q) AS digest FROM changed GROUP BY cid) n ON n.cid = a.cid"
    )
    rows = rows.combine_chunks()
    if not rows.num_rows:
        return
    suffixes = row_suffixes(rows, work.events, work.identity)
    old = stored["suffix"].take(rows["wid"]).combine_chunks()
    keys = entry_keys(rows["key"].combine_chunks(), EMITTED, pc.coalesce(old, suffixes))
    gone = pc.less(rows["void"], NEVER).combine_chunks()
    kept = driver_values(rows, extras(rows, work.events, last=True))
    sent = pc.or_(gone, pc.or_(rows["wid"].is_null(), rows["moved"])).combine_chunks()
    values = pc.if_else(gone, None, kept).filter(sent)
    work.state.change(keys.filter(sent), values, rows["due"].filter(sent).to_numpy())
