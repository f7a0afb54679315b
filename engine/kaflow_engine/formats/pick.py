"""Take and filter for Arrow tables, without a copy where all rows are wanted."""

from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Rows = TypeVar("Rows", pa.Table, pa.ChunkedArray, pa.Array)


def pick(rows: Rows, places: pa.Array | pa.ChunkedArray) -> Rows:
    """Return rows in the order of integer places."""
    if len(places) == len(rows) and np.array_equal(places.to_numpy(), np.arange(len(rows))):
        return rows
    return rows.take(places)


def keep(rows: Rows, mask: pa.BooleanArray | pa.ChunkedArray) -> Rows:
    """Return the rows where a mask is true."""
    if not len(mask) or (not mask.null_count and pc.all(mask).as_py()):
        return rows
    return rows.filter(mask)


def at_places(values: pa.Array, places: pa.Array, count: int) -> pa.Array:
    """Return values at their places among so many, and null at the others."""
    at = pc.index_in(pa.array(np.arange(count)), places.cast(pa.int64()))
    return values.take(at)


def either(
    mask: pa.Array | pa.ChunkedArray, first: pa.ChunkedArray, other: pa.ChunkedArray
) -> pa.Array:
    """Return values of the first column where the mask is true, else of the other one.

    Arrow's own function does not know all types.
    """
    places = np.arange(len(mask)) + np.where(np.asarray(mask), 0, len(mask))
    return pa.chunked_array([*first.chunks, *other.chunks]).take(pa.array(places)).combine_chunks()
