"""Rows that wait, and that one look at the dimensions settles when a record comes, without tables.

They have waited since a batch before, or since an earlier place of this one. Such are the rows of
keys under which the batch brings one dimension record, in a join over current dimension values
only. All others take the long way in `keyed_join`.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.join.direct.lookup_join import (
    Settled,
    can_settle_at_once,
    complete_rows,
    wait,
)
from kaflow_engine.operators.join.direct.moved import Moved
from kaflow_engine.operators.join.emit import leave
from kaflow_engine.operators.join.row_codec import load_stored
from kaflow_engine.operators.join.temporal_join import current_versions
from kaflow_engine.operators.join.workspace import DRIVERS, JoinWorkspace
from kaflow_engine.operators.keyed_state import WAITING
from kaflow_engine.operators.outcomes.outcomes import count_fates
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.schemas import DRIVING, ORIGIN, TRIGGER
from kaflow_engine.state.keys import entry_keys

_FEW = 200
_ROW = ["key", "d", *ORIGIN, "ts", "due", "members", "raw", "counted", "forced"]
_WAITING = pa.schema([DRIVERS.field(name) for name in _ROW])
"""What is read of rows that wait, wherever they lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What the records of dimensions did to rows that wait."""

    rows: list[pa.Table]
    """Travelling rows, schema EXCHANGE."""
    left: pa.Table
    """Rows of the join that take the long way."""
    done: pa.BinaryArray
    """Keys of records under which no row of the state takes it."""


def release(
    work: JoinWorkspace, moved: Moved, settled: Settled, counters: Counter[str]
) -> Released:
    """Send on rows that wait, where a dimension record has made them complete.

    Args:
        work: A join that only looks up (see `lookup_join`).
        moved: The dimension records of the batch.
        settled: What became of its rows at their own places.
        counters: Takes the classes of the rows.
    """
    left, pending = settled.left, settled.pending
    both = pa.concat_arrays([moved.keys, moved.several])
    if not len(both):
        return Released(rows=[], left=left, done=both)
    waits = work.can_wait and _waits_for(work, both.to_pylist())
    rows: list[pa.Table] = []
    done = both.slice(0, 0) if waits else both
    if (waits or pending.num_rows) and can_settle_at_once(work):
        found = _released(work, moved, pending, counters, stored=waits)
        if found is None:
            left = pa.concat_tables([left, pending])
        else:
            rows, done = [found], moved.keys if waits else both
    return Released(rows=rows, left=_concerned(left, done), done=done)


def _concerned(left: pa.Table, done: pa.BinaryArray) -> pa.Table:
    """Leave out records under whose keys there is nothing that takes the long way."""
    driving = pc.equal(left["kind"], DRIVING)
    keys = pc.unique(left["key"].filter(driving))
    concerned = pc.or_(driving, pc.is_in(left["key"], value_set=keys))
    return keep(left, pc.or_(concerned, pc.invert(pc.is_in(left["key"], value_set=done))))


def _waits_for(work: JoinWorkspace, keys: list[bytes]) -> bool:
    """Return whether rows may wait under any of these keys; of many keys, whether any row waits."""
    if len(keys) <= _FEW:
        return bool(work.state.entries(WAITING, keys)[0])
    return work.state.has(WAITING)


def _released(
    work: JoinWorkspace,
    moved: Moved,
    pending: pa.Table,
    counters: Counter[str],
    *,
    stored: bool,
) -> pa.Table | None:
    """Return the travelling rows of keys that have one record.

    None where the SQL fails on a row: all take the long way, which charges it to its record.
    """
    state = load_stored(work, moved.keys.to_pylist() if stored else [])
    waiting = pa.concat_tables([state.drivers.select(_ROW), _of_batch(work, pending)])
    rows = _seen(work, moved, waiting)
    complete, failed = complete_rows(work, rows)
    if failed.any():
        return None
    before = state.drivers.num_rows  # those of the batch stand behind them
    gone = pa.array(complete[:before])
    old = keep(rows.slice(0, before), gone)
    counters["waiting"] -= pc.sum(old["counted"]).as_py() or 0
    suffixes = keep(state.rows["suffix"], gone).combine_chunks()
    entries = entry_keys(old["key"].combine_chunks(), WAITING, suffixes)
    work.state.change(entries, pa.nulls(len(entries), pa.binary()), old["due"].to_numpy())
    new = rows.slice(before)
    wait(work, new.filter(pa.array(~complete[before:])).drop_columns("due"), counters)
    leaving = keep(rows, pa.array(complete))
    parts = first_parts(leaving["key"].combine_chunks(), work.flow.partitions)
    outcome = leave(work, leaving.append_column("part", pa.array(parts)))
    count_fates(counters, outcome.fates, rows["counted"])
    return outcome.rows


def _of_batch(work: JoinWorkspace, pending: pa.Table) -> pa.Table:
    """Return rows of the exchange as `load_stored` reads drivers."""
    known = {"d": pending["payload"], "due": pc.add(pending["ts"], work.driving.ttl)}
    columns = {name: known[name] if name in known else pending[name] for name in _ROW}
    return pa.table(columns).cast(_WAITING)


def _seen(work: JoinWorkspace, moved: Moved, waiting: pa.Table) -> pa.Table:
    """Return rows as `leave` wants them, as each sees all sides when the record of its key comes.

    Args:
        work: The join.
        moved: The records.
        waiting: Rows of their keys.
    """
    records = moved.of(waiting)
    numbers = pa.array(np.arange(waiting.num_rows))
    columns = {
        "rn": numbers,
        "did": numbers,
        **{name: waiting[name] for name in _ROW},
        **{name: records[name] for name in TRIGGER},
    }
    for j in work.dimensions:
        own = pc.equal(records["side"], j)
        stamps, texts = records["ts"], records["payload"]
        if not pc.all(own).as_py():
            keys = waiting["key"].combine_chunks().dictionary_encode()
            stored_stamps, stored_texts = current_versions(work, j, keys.dictionary)
            stamps = pc.if_else(own, stamps, stored_stamps.take(keys.indices))
            texts = pc.if_else(own, texts, stored_texts.take(keys.indices))
        columns[f"s{j}"] = pc.if_else(pc.greater(stamps, waiting["due"]), None, texts)
    return pa.table(columns)
