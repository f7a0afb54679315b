"""Rows that wait, and that one look at the dimensions settles: they are sent on without tables.

Such are the rows of keys under which the batch brings one dimension record, in a join over
current dimension values only. All others take the long way in `keyed_join`.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.join.direct.lookup_join import complete_rows
from kaflow_engine.operators.join.emit import leave
from kaflow_engine.operators.join.row_codec import load_stored
from kaflow_engine.operators.join.temporal_join import current_versions
from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.keyed_state import WAITING
from kaflow_engine.operators.outcomes.outcomes import count_fates
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.schemas import DRIVING, ORIGIN, SIDE, TRIGGER
from kaflow_engine.state.keys import entry_keys

_FEW = 200
_FROM_STATE = ("key", "d", *ORIGIN, "ts", "due", "members", "raw", "counted", "forced")


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What the records of dimensions did to rows that wait."""

    rows: list[pa.Table]
    """Travelling rows, schema EXCHANGE."""
    left: pa.Table
    """Rows of the join that take the long way."""
    done: pa.BinaryArray
    """Keys of records under which no row that waits takes it."""


def release(work: JoinWorkspace, here: pa.Table, counters: Counter[str]) -> Released:
    """Send on rows that wait, where a dimension record has made them complete.

    Args:
        work: A join that only looks up (see `lookup_join`).
        here: Its rows, schema EXCHANGE, without those that were settled at once.
        counters: Takes the classes of the rows.
    """
    records = keep(here, pc.equal(here["kind"], SIDE))
    keys = pc.unique(records["key"])
    rows: list[pa.Table] = []
    if not work.can_wait or not _waits_for(work, keys.to_pylist()):
        done = keys
    elif work.several:
        done = keys.slice(0, 0)
    else:
        rows, done = _released(work, records, counters)
    driving = pc.equal(here["kind"], DRIVING)
    concerned = pc.is_in(here["key"], value_set=pc.unique(here["key"].filter(driving)))
    long = pc.or_(driving, pc.or_(concerned, pc.invert(pc.is_in(here["key"], value_set=done))))
    return Released(rows=rows, left=keep(here, long), done=done)


def _waits_for(work: JoinWorkspace, keys: list[bytes]) -> bool:
    """Return whether rows may wait under any of these keys; of many keys, whether any row waits."""
    if len(keys) <= _FEW:
        return bool(work.state.entries(WAITING, keys)[0])
    return work.state.has(WAITING)


def _released(
    work: JoinWorkspace, records: pa.Table, counters: Counter[str]
) -> tuple[list[pa.Table], pa.BinaryArray]:
    """Return the travelling rows of keys that have one record, and those keys.

    Where the SQL fails on a row, all take the long way, which charges it to its driving record.
    """
    counts = pc.value_counts(records["key"].combine_chunks())
    once = counts.field("values").filter(pc.equal(counts.field("counts"), 1))
    once = once.take(pc.sort_indices(once))
    stored = load_stored(work, once.to_pylist())
    if not stored.drivers.num_rows:
        return [], once
    rows = _seen(work, records, stored.drivers, once)
    complete, failed = complete_rows(work, rows)
    if failed.any():
        return [], once.slice(0, 0)
    mask = pa.array(complete)
    gone = keep(rows, mask)
    parts = first_parts(gone["key"].combine_chunks(), work.flow.partitions)
    outcome = leave(work, gone.append_column("part", pa.array(parts)))
    counters["waiting"] -= pc.sum(gone["counted"]).as_py() or 0
    count_fates(counters, outcome.fates, rows["counted"])
    suffixes = keep(stored.rows["suffix"], mask).combine_chunks()
    entries = entry_keys(gone["key"].combine_chunks(), WAITING, suffixes)
    work.state.change(entries, pa.nulls(len(entries), pa.binary()), gone["due"].to_numpy())
    return [outcome.rows], once


def _seen(
    work: JoinWorkspace, records: pa.Table, waiting: pa.Table, keys: pa.BinaryArray
) -> pa.Table:
    """Return rows as `leave` wants them, as each sees all sides when the record of its key comes.

    Args:
        work: The join.
        records: Of dimensions, one for each of `keys`.
        waiting: The rows, as `load_stored` reads drivers.
        keys: Of which there are rows, or not.
    """
    came = records.take(pc.index_in(waiting["key"], value_set=records["key"].combine_chunks()))
    numbers = pa.array(np.arange(waiting.num_rows))
    columns = {
        "rn": numbers,
        "did": numbers,
        **{name: waiting[name] for name in _FROM_STATE},
        **{name: came[name] for name in TRIGGER},
    }
    for j in work.dimensions:
        own = pc.equal(came["side"], j)
        stamps, texts = came["ts"], came["payload"]
        if not pc.all(own).as_py():
            places = pc.index_in(waiting["key"], value_set=keys)
            stored_stamps, stored_texts = current_versions(work, j, keys)
            stamps = pc.if_else(own, stamps, stored_stamps.take(places))
            texts = pc.if_else(own, texts, stored_texts.take(places))
        columns[f"s{j}"] = pc.if_else(pc.greater(stamps, waiting["due"]), None, texts)
    return pa.table(columns)
