"""Rows in the order of section 1 of the semantics, without a query where integers decide."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.rows.schemas import TRIGGER

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def order_of(rows: pa.Table, names: Sequence[str]) -> Places:
    """Return the places of rows in ascending order of integer columns, the first one foremost."""
    columns = [rows[name].to_numpy() for name in names]
    telling = [column for column in columns if len(column) and np.any(column != column[0])]
    if not telling:
        return np.arange(rows.num_rows)
    return np.lexsort(telling[::-1])


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """Return of each `key` the row that was triggered last, in no particular order."""
    keys = rows["key"].combine_chunks().dictionary_encode()
    order = order_of(rows, TRIGGER)
    last = np.empty(len(keys.dictionary), np.int64)
    last[keys.indices.to_numpy()[order]] = order  # of repeated places the last assignment stays
    return rows.take(pa.array(last))


def has_members(rows: pa.Table) -> bool:
    """Return whether any row has met a record of an event side."""
    return bool(pc.max(pc.list_value_length(rows["members"])).as_py())
