"""What rows of a table become, one after the other: the versions that each key has in a batch."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.rows.row_order import Places, causes_of
from kaflow_engine.operators.table.kept_rows import read_rows, row_values
from kaflow_engine.state.binary_columns import Items

_NONE = -1
_BEFORE_ALL = -(1 << 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What rows make of the keys of a table."""

    changes: pa.Table
    """`group`, `old` and `new` (packed rows, null where there is none), `ts`, and `by`, the place
    of the row that made it: one for each change of content, in their order."""
    keys: pa.BinaryArray
    """Each once."""
    values: pa.BinaryArray
    """What they have in the end; null: nothing."""
    ts: Places
    """Of what they have in the end."""
    new: Items
    """Where they had nothing before (bool)."""


def versions(rows: pa.Table, keys: pa.DictionaryArray, stored: pa.BinaryArray) -> Versions:
    """Return what rows make of the keys of a table.

    What one cause makes of a key is one change: a row, wherever there is one, else a delete. The
    event time of a row is the greatest one since the key has a row.

    Args:
        rows: Schema EXCHANGE, in their order; without a payload they delete.
        keys: Their keys.
        stored: What each of the dictionary of `keys` has before.
    """
    codes = keys.indices.to_numpy().astype(np.int64)
    order = np.argsort(codes, kind="stable")
    codes, causes = codes[order], causes_of(rows)[order]
    starts = np.flatnonzero(_changes(codes) | _changes(causes))
    owners = codes[starts]
    begins = _changes(owners)
    known = stored.is_valid().to_numpy(zero_copy_only=False)
    ts_before, packed = _stored(stored, known)
    texts = pa.chunked_array([*rows["payload"].chunks, packed], pa.string())
    numbers = texts.combine_chunks().dictionary_encode()
    every = pc.fill_null(numbers.indices, _NONE).to_numpy().astype(np.int64)
    given, kept = every[: rows.num_rows], every[rows.num_rows :]

    places = np.where(given[order] == _NONE, _NONE, np.arange(len(order)))
    last = np.maximum.reduceat(places, starts)
    now = np.where(last == _NONE, _NONE, given[order[last]])
    before = np.empty_like(now)
    before[1:] = now[:-1]
    before[begins] = kept[owners[begins]]
    ts = np.maximum.reduceat(rows["ts"].to_numpy()[order], starts)
    ts[begins] = np.maximum(ts[begins], ts_before[owners[begins]])
    ts = _greatest_so_far(ts, np.cumsum(begins | (before == _NONE)))

    ends = np.append(np.flatnonzero(begins)[1:], len(owners)) - 1
    final, words = now[ends], numbers.dictionary
    by = order[np.append(starts[1:], len(order)) - 1]
    changed = np.flatnonzero(before != now)
    changed = changed[np.argsort(by[changed], kind="stable")]
    groups = keys.dictionary.take(pa.array(owners))
    return Versions(
        changes=pa.table(
            {
                "group": groups.take(pa.array(changed)),
                "old": _texts(words, before[changed]),
                "new": _texts(words, now[changed]),
                "ts": ts[changed],
                "by": by[changed],
            }
        ),
        keys=groups.take(pa.array(ends)),
        values=row_values(ts[ends], _texts(words, final)),
        ts=ts[ends],
        new=(~known[owners[ends]]) & (final != _NONE),
    )


def _stored(stored: pa.BinaryArray, known: Items) -> tuple[Places, pa.StringArray]:
    """Return event times, and packed rows, of what is stored."""
    ts = np.full(len(stored), _BEFORE_ALL, np.int64)
    times, texts = read_rows(stored.drop_null())
    ts[known] = times
    places = np.cumsum(known) - 1
    return ts, texts.take(pa.array(places, mask=~known))


def _changes(numbers: Places) -> Items:
    """Return where another number begins."""
    return np.append(True, numbers[1:] != numbers[:-1])


def _greatest_so_far(values: Places, runs: Places) -> Places:
    """Return the running maximum within runs of equal numbers."""
    found, step = values.copy(), 1
    while step < len(found):
        same = runs[step:] == runs[:-step]
        if not same.any():
            break
        earlier = np.where(same, found[:-step], _BEFORE_ALL)
        found[step:] = np.maximum(found[step:], earlier)
        step *= 2
    return found


def _texts(words: pa.Array, numbers: Places) -> pa.Array:
    return words.take(pa.array(numbers, mask=numbers == _NONE)).cast(pa.string())
