"""Rows that are taken into many groups at once: one read, one statement, one write.

It is for groups of which accumulators say all, and that change once in a batch; a batch in which a
result fails goes group by group.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.operators.aggregate.calculate import computed, keeps_rows
from kaflow_engine.operators.aggregate.entries import (
    GroupValues,
    entries_of,
    group_values,
    overs_at,
    read_group_values,
)
from kaflow_engine.operators.aggregate.windows import Numbers
from kaflow_engine.operators.aggregate.workspace import Changed, Work
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS

_NEVER = np.iinfo(np.int64).min


def may_be_bulk(aggregate: Aggregate) -> bool:
    """Tell whether rows may be taken at once."""
    once = not (aggregate.leaves == "changes" and aggregate.each)
    plain = not aggregate.retracts and not isinstance(aggregate.window, SessionWindow)
    return once and plain and not keeps_rows(aggregate)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups that rows go into, by their numbers, which are places in each column and stand in
    the order of the entries."""

    of_rows: Numbers
    """The number of the group of each row."""
    entries: pa.BinaryArray
    keys: pa.BinaryArray
    starts: Numbers
    ends: Numbers
    by: Numbers
    """The place of the last row of each."""


def take_in_bulk(
    work: Work, rows: pa.Table, places: Numbers, starts: Numbers, ends: Numbers
) -> bool:
    """Take rows into their groups, unless they must be taken group by group.

    Rows of windows that end before they leave are for those that have not ended.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, in their order.
        places: The rows, as often as there are windows that they fall into.
        starts: Of these windows.
        ends: Of these windows.

    Returns:
        Whether they were taken.
    """
    aggregate = work.aggregate
    groups = _groups(work, rows, places, starts, ends)
    stored = work.groups.in_windows(groups.entries, groups.starts, groups.ends)
    known = stored.is_valid()
    before = read_group_values(stored.filter(known))
    held = aggregate.leaves == "ended"
    if before is None or (held and not before.held.all()):
        return False
    numbers = np.arange(len(groups.entries))
    old = numbers[known.to_numpy(zero_copy_only=False)]
    ts = np.full(len(numbers), _NEVER)
    np.maximum.at(ts, groups.of_rows, rows["ts"].to_numpy()[places])
    ts[old] = np.maximum(ts[old], before.ts)
    try:
        found = _computed(aggregate, rows, places, groups, old, before, ts)
    except DATA_ERRORS:
        return False
    values = group_values(ts, found["columns"].slice(0, len(numbers)).combine_chunks(), held=held)
    overs = overs_at(aggregate, ts, groups.ends, held)
    work.groups.put_all(groups.entries, values, known, overs)
    first = work.count
    work.rows.append(rows)
    if _shows(aggregate):
        results = found["row"].combine_chunks()
        sent = np.full(len(numbers), -1)
        sent[old] = np.arange(len(numbers), len(results))
        was = results.take(pa.array(sent, mask=sent < 0))
        work.changed = Changed(
            entries=groups.entries,
            keys=groups.keys,
            values=values,
            old=was,
            new=results.slice(0, len(numbers)),
            ts=ts,
            by=groups.by + first,
            starts=groups.starts,
            ends=groups.ends,
        )
    return True


def _groups(work: Work, rows: pa.Table, places: Numbers, starts: Numbers, ends: Numbers) -> _Groups:
    keys = rows["key"].combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy().astype(np.int64)[places]
    windowed = work.aggregate.window is not None
    if windowed:
        windows, of_windows = np.unique(starts, return_inverse=True)
        codes = codes * len(windows) + of_windows
    pairs = pa.array(codes).dictionary_encode()
    of_rows = pairs.indices.to_numpy().astype(np.int64)
    count = len(pairs.dictionary)
    some, by = np.empty(count, np.int64), np.empty(count, np.int64)
    some[of_rows] = np.arange(len(of_rows))  # any row of the group
    by[of_rows] = places  # for equal indices the last write stays
    own = keys.dictionary.take(keys.indices.take(pa.array(places[some])))
    entries = entries_of(own, starts[some] if windowed else None)
    order = pc.sort_indices(entries)  # what is read and written of them is sorted by their keys
    numbers = order.to_numpy()
    ranks = np.empty(count, np.int64)
    ranks[numbers] = np.arange(count)
    some = some[numbers]
    return _Groups(
        of_rows=ranks[of_rows],
        entries=entries.take(order),
        keys=own.take(order),
        starts=starts[some],
        ends=ends[some],
        by=by[numbers],
    )


def _computed(
    aggregate: Aggregate,
    rows: pa.Table,
    places: Numbers,
    groups: _Groups,
    old: Numbers,
    before: GroupValues,
    ts: Numbers,
) -> pa.Table:
    """Return accumulators and results by the numbers of groups; behind them those of stored ones as
    they were, where results of them are wanted."""
    count = len(groups.entries)
    columns = before.columns
    again = np.arange(len(old) if _shows(aggregate) else 0)
    wanted = np.concatenate([np.arange(count), old[again]])
    numbers = np.concatenate([np.arange(count), count + again])
    windowed = aggregate.window is not None
    texts = pc.binary_slice(groups.keys, 1, 1 << 31).cast(pa.string())
    infos = pa.table(
        {
            "v": numbers,
            "keys": texts.take(pa.array(wanted)),
            "began": pa.array(groups.starts[wanted], mask=np.full(len(wanted), not windowed)),
            "ended": pa.array(groups.ends[wanted], mask=np.full(len(wanted), not windowed)),
            "ts": np.concatenate([ts, before.ts[again]]),
        }
    )
    into = np.concatenate([old, count + again])
    olds = pa.table(
        {"v": into, "g": into, "columns": pa.chunked_array([columns, columns.slice(0, len(again))])}
    )
    given = rows.select(["kind", "payload"]).take(pa.array(places))
    news = given.append_column("v", pa.array(groups.of_rows))
    news = news.append_column("g", pa.array(groups.of_rows))
    return computed(aggregate, infos, olds, news, results=_shows(aggregate))


def _shows(aggregate: Aggregate) -> bool:
    """Tell whether what rows change leaves."""
    return aggregate.leaves == "changes"
