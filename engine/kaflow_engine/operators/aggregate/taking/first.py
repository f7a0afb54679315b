"""Rows of which the first of equal ones leaves, and what is remembered of it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.operators.aggregate.entries import Group, entries_of, group_values, overs_at
from kaflow_engine.operators.aggregate.leave import append_rows, places_of, result_letters
from kaflow_engine.operators.aggregate.windows import Numbers
from kaflow_engine.operators.aggregate.workspace import Change, Work, joined
from kaflow_engine.operators.handover import HandOn
from kaflow_engine.operators.rows.row_text import unpack

Known = np.ndarray[Any, np.dtype[np.bool_]]

_NO_COLUMNS = "[]"
"""There are no accumulators."""


def take_first(work: Work, rows: pa.Table) -> None:
    """Remember rows that equal none before them, and note that they leave.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, in their order.
    """
    entries = entries_of(rows["key"].combine_chunks(), None).dictionary_encode()
    _, places = np.unique(entries.indices.to_numpy(), return_index=True)
    ts = rows["ts"].to_numpy()[places]
    of_records = pc.all(pc.greater(rows["t_phase"], 0)).as_py()  # others may be over at once
    if of_records and work.groups.is_untouched:
        known = _remember_at_once(work, entries.dictionary, ts)
    else:
        known = _remember(work, entries.dictionary, ts)
    work.rows.append(rows.take(pa.array(places[~known])))


def _remember_at_once(work: Work, entries: pa.BinaryArray, ts: Numbers) -> Known:
    """Remember what is new; returns what was known before."""
    known = work.groups.values(entries).is_valid()
    new = pc.invert(known)
    some = new.to_numpy(zero_copy_only=False)
    values = group_values(ts[some], pa.repeat(_NO_COLUMNS, int(some.sum())))
    overs = overs_at(work.aggregate, ts[some], ts[some])
    work.groups.put_all(entries.filter(new), values, pa.repeat(False, len(values)), overs)
    return ~some


def _remember(work: Work, entries: pa.BinaryArray, ts: Numbers) -> Known:
    names: list[bytes] = entries.to_pylist()
    known = [group is not None for group in work.groups.of(names)]
    for name, is_known, at in zip(names, known, ts.tolist(), strict=True):
        if not is_known:
            work.groups.put(name, Group(ts=at, last=0, columns=_NO_COLUMNS), known=False)
    return np.array(known, np.bool_)


def send_first(work: Work, hand_on: HandOn) -> list[pa.Table]:
    """Hand on the rows that leave, and note what could not be sent.

    Returns:
        Rows and dead letters, schema EXCHANGE.
    """
    rows = joined(work.rows)
    if not rows.num_rows:
        return []
    keys = rows["key"].combine_chunks()
    numbers = pa.chunked_array([pa.array(np.arange(len(keys)))])
    ts = rows["ts"].combine_chunks()
    known = places_of(work, numbers, rows, ts, keys)
    texts = pc.binary_slice(keys, 1, 1 << 31).cast(pa.string())
    leaving = pa.table({"rn": numbers, "row": texts})
    if work.aggregate.timed:
        at = "CAST(make_timestamp(ts * 1000) AS VARCHAR)"
        row = f"CAST(to_json(list_append({unpack('row')}, {at})) AS VARCHAR)"
        timed = leaving.append_column("ts", pa.chunked_array([ts]))
        leaving = query(f'SELECT rn, {row} AS "row" FROM rows ORDER BY rn', rows=timed)
    taken = hand_on(append_rows(work, leaving, known))
    if not taken.bad:
        return [taken.rows]
    failed = [(_change(keys[one.row].as_py(), ts[one.row].as_py()), one) for one in taken.bad]
    return [taken.rows, result_letters(work, failed)]


def _change(key: bytes, ts: int) -> Change:
    return Change(entry=key, key=key, start=None, end=None, ts=ts, by=0, row=None)
