"""What a join keeps for later batches: events, driving records, matches, waiting rows."""

import numpy as np
import pyarrow as pa

from kaflow_engine.operators.join.row_codec import (
    driver_suffixes,
    driver_values,
    event_values,
    extras,
    order_suffixes,
    row_suffixes,
)
from kaflow_engine.operators.join.workspace import NEVER, JoinWorkspace
from kaflow_engine.operators.keyed_state import DRIVER, KEYLESS, MATCH, WAITING
from kaflow_engine.operators.outcomes.outcomes import KEPT_FLAGS
from kaflow_engine.state.binary_columns import joined
from kaflow_engine.state.keys import entry_keys


def remember(work: JoinWorkspace, stored: pa.Table) -> None:
    """Write what the batch leaves behind; tables as at the end of the join.

    Args:
        work: The join.
        stored: The rows that waited before this batch, in the order of `wid`.
    """
    _events(work)
    if work.retains:
        _drivers(work)
    if work.keeps_matches:
        _matches(work)
    if work.can_wait:
        _waiting(work, stored)


def keep_waiting(work: JoinWorkspace, rows: pa.Table) -> None:
    """Write rows of table d, without flags, and their event sides (o<i>, s<i>): they wait."""
    rows = rows.combine_chunks()
    suffixes = row_suffixes(rows, work.events, work.identity)
    keys = entry_keys(rows["key"].combine_chunks(), WAITING, suffixes)
    dues = None if work.retains else rows["due"].to_numpy()
    work.state.change(keys, driver_values(rows, extras(rows, work.events)), dues)


def _events(work: JoinWorkspace) -> None:
    for i in work.moved.intersection(work.events):
        rows = work.table(
            f"SELECT key, ts, ord, s, due FROM e{i} WHERE pos > 0 AND due >= {work.horizon}"
        ).combine_chunks()
        orders = rows["ord"].combine_chunks()
        keys = entry_keys(rows["key"].combine_chunks(), i, order_suffixes(orders))
        values = event_values(rows["ts"], orders, rows["s"].combine_chunks())
        work.state.put_until(keys, values, rows["due"].to_numpy(), mixed=True)


def _drivers(work: JoinWorkspace) -> None:
    """Keep new driving records that may still meet something, and flags that changed."""
    rows = work.table(
        f"SELECT * REPLACE (flags & {KEPT_FLAGS} AS flags) FROM d "
        "WHERE (did > 0 AND NOT hopeless) OR (did < 0 AND flags <> flags_before)"
    ).combine_chunks()
    keyed = rows.filter(rows["key"].is_valid()).combine_chunks()
    keyless = rows.filter(rows["key"].is_null()).combine_chunks()
    shards = (keyless["d_off"].to_numpy() % 256).astype(np.uint8)
    single = pa.array([bytes((shard,)) for shard in shards.tolist()], pa.binary())
    for side, owners, group in (
        (DRIVER, keyed["key"].combine_chunks(), keyed),
        (KEYLESS, single, keyless),
    ):
        keys = entry_keys(owners, side, driver_suffixes(group, work.identity))
        values = driver_values(group)
        new = group["did"].to_numpy() > 0
        dues = group["due"].to_numpy()
        work.state.put_until(
            keys.filter(pa.array(new)), values.filter(pa.array(new)), dues[new], mixed=True
        )
        work.state.change(keys.filter(pa.array(~new)), values.filter(pa.array(~new)))


def _matches(work: JoinWorkspace) -> None:
    for i in work.events:
        rows = work.table(
            "SELECT d.key, d.d_batch, d.d_part, d.d_off, d.members, p.ord, p.s "
            f"FROM new_pairs{i} p JOIN d ON d.did = p.did WHERE NOT d.hopeless"
        ).combine_chunks()
        orders = rows["ord"].combine_chunks()
        side = pa.scalar(bytes((i,)), pa.binary())
        places = joined(driver_suffixes(rows, work.identity), side, order_suffixes(orders))
        keys = entry_keys(rows["key"].combine_chunks(), MATCH, places)
        values = event_values(
            pa.array(np.zeros(rows.num_rows, np.int64)), orders, rows["s"].combine_chunks()
        )
        work.state.change(keys, values)


def _waiting(work: JoinWorkspace, stored: pa.Table) -> None:
    sides = "".join(f", c.o{i}, c.s{i}" for i in work.events)
    keep_waiting(
        work,
        work.table(
            f"SELECT d.* REPLACE (0 AS flags){sides} FROM waiting w JOIN c ON c.cid = w.cid "
            "JOIN d ON d.did = w.did WHERE c.wid IS NULL AND d.key IS NOT NULL"
        ),
    )
    if not stored.num_rows:
        return
    gone = work.table(
        "SELECT c.wid, d.key, d.due FROM c JOIN d ON d.did = c.did WHERE c.wid IS NOT NULL "
        f"AND (c.void < {NEVER} OR c.cid NOT IN (SELECT cid FROM waiting))"
    )
    suffixes = stored["suffix"].take(gone["wid"]).combine_chunks()
    keys = entry_keys(gone["key"].combine_chunks(), WAITING, suffixes)
    dues = None if work.retains else gone["due"].to_numpy()
    work.state.change(keys, pa.nulls(len(keys), pa.binary()), dues)
