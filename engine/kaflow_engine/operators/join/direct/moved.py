"""The dimension records that a batch brings to the keys of a join, and where rows stand to them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.rows.schemas import SIDE, TRIGGER

UNTOUCHED, BEFORE, BEHIND, AMONG = range(4)
"""A row's key has no record; it has one, which comes later; it has one, which came earlier; it has
several, or one at the row's own place."""

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Stands = np.ndarray[tuple[int], np.dtype[np.int8]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Dimension records of a batch."""

    single: pa.Table
    """Those whose key has no other; schema EXCHANGE, ascending by key."""
    several: pa.BinaryArray
    """The keys of the others."""

    @property
    def keys(self) -> pa.BinaryArray:
        """The keys of `single`."""
        return self.single["key"].combine_chunks()

    def of(self, rows: pa.Table) -> pa.Table:
        """Return the record of the key of each row, nulls where it has none in `single`."""
        return self.single.take(pc.index_in(rows["key"], value_set=self.keys))


def moved_by(here: pa.Table) -> Moved:
    """Return the dimension records among the rows of a join that only looks up."""
    records = here.filter(pc.equal(here["kind"], SIDE))
    if not records.num_rows:
        return Moved(single=records, several=pa.array([], pa.binary()))
    counts = pc.value_counts(records["key"].combine_chunks())
    keys, more = counts.field("values"), pc.greater(counts.field("counts"), 1)
    several = keys.filter(more)
    single = records.filter(pc.invert(pc.is_in(records["key"], value_set=several)))
    return Moved(single=single.take(pc.sort_indices(single["key"])), several=several)


def stands(rows: pa.Table, moved: Moved) -> Stands:
    """Return where each row stands to the record of its key."""
    found = np.full(rows.num_rows, UNTOUCHED, np.int8)
    if moved.single.num_rows:
        touched = pc.is_in(rows["key"], value_set=moved.keys).to_numpy()
        some = rows.select(["key", *TRIGGER]).filter(pa.array(touched))
        found[touched] = _compared(some, moved.of(some))
    if len(moved.several):
        found[pc.is_in(rows["key"], value_set=moved.several).to_numpy()] = AMONG
    return found


def _compared(rows: pa.Table, records: pa.Table) -> Stands:
    found = np.full(rows.num_rows, AMONG, np.int8)
    for name in reversed(TRIGGER):  # the first one decides
        own, other = (_numbers(table[name]) for table in (rows, records))
        found[own < other] = BEFORE
        found[own > other] = BEHIND
    return found


def _numbers(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    return column.to_numpy()
