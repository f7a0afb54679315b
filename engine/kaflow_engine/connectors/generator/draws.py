"""Numbers that look random and are a function of a seed, a column and the place of a record."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.sources import DrawnParams

Numbers = npt.NDArray[np.uint64]
Shares = npt.NDArray[np.float64]

_STEP = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def shares(seed: int, name: str, offsets: Numbers) -> Shares:
    """Return a number from 0 to 1, 1 excluded, for each offset (splitmix64)."""
    mixed = seed & _MASK
    for letter in name.encode():
        mixed = ((mixed ^ letter) * 0x100000001B3) & _MASK
    at = (offsets + np.uint64(1)) * np.uint64(_STEP) + np.uint64(mixed)
    at = (at ^ (at >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    at = (at ^ (at >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    at ^= at >> np.uint64(31)
    return (at >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def drawn(seed: int, column: DrawnParams, offsets: Numbers, stamps: pa.Array) -> pa.Array:
    """Return the values of a column for each offset, as the type of the column has them."""
    share = shares(seed, column.name, offsets)
    found = _KINDS[column.distribution](column, share, offsets, stamps)
    if column.prefix is not None:
        texts = found.cast(pa.string())
        found = pc.binary_join_element_wise(pa.scalar(column.prefix), texts, "")
    if not column.nulls:
        return found
    gone = pa.array(shares(seed, f"{column.name}\0nulls", offsets) < column.nulls)
    return pc.if_else(gone, pa.scalar(None, found.type), found)


def _sequence(column: DrawnParams, share: Shares, offsets: Numbers, stamps: pa.Array) -> pa.Array:
    return pa.array(offsets.astype(np.int64))


def _time(column: DrawnParams, share: Shares, offsets: Numbers, stamps: pa.Array) -> pa.Array:
    return stamps


def _uniform(column: DrawnParams, share: Shares, offsets: Numbers, stamps: pa.Array) -> pa.Array:
    if column.digits:
        return pa.array(np.round(column.min + share * (column.max - column.min), column.digits))
    low, high = math.ceil(column.min), math.floor(column.max)
    return pa.array(low + np.floor(share * (high - low + 1)).astype(np.int64))


def _normal(column: DrawnParams, share: Shares, offsets: Numbers, stamps: pa.Array) -> pa.Array:
    from statistics import NormalDist

    inverse = NormalDist(column.mean, column.deviation).inv_cdf
    values = np.round([inverse(max(each, 2.0**-54)) for each in share.tolist()], column.digits)
    return pa.array(values if column.digits else values.astype(np.int64))


def _choice(column: DrawnParams, share: Shares, offsets: Numbers, stamps: pa.Array) -> pa.Array:
    places = np.floor(share * len(column.of)).astype(np.int64)
    return pa.array(column.of, pa.string()).take(pa.array(places))


def _skewed(column: DrawnParams, share: Shares, offsets: Numbers, stamps: pa.Array) -> pa.Array:
    return pa.array(1 + np.floor(share**2 * max(1, math.floor(column.max))).astype(np.int64))


_KINDS: dict[str, Callable[[DrawnParams, Shares, Numbers, Any], Any]] = {
    "sequence": _sequence,
    "uniform": _uniform,
    "normal": _normal,
    "choice": _choice,
    "skewed": _skewed,
    "time": _time,
}
