"""Columns encoded as Avro: for every row the bytes of one value, in one binary array."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.avro.types import Logical

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_TIMES = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


class CannotWrite(Exception):
    """The bulk writer has no way from this column to this type."""


def whole(values: pa.Array, logical: Logical | None, path: str) -> Longs:
    kind = _TIMES.get(logical.name) if logical else None
    if pa.types.is_temporal(values.type) and not pa.types.is_interval(values.type):
        if kind is None:
            raise CannotWrite(f"'{path}' is a time, the schema has a number")
        values = values.cast(kind, safe=False)
        values = values.cast(pa.int32()) if kind.bit_width == 32 else values
    elif not is_number(values.type):
        raise CannotWrite(f"'{path}' is not a number")
    return numbers(values, pa.int64())


def is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        is_kind(kind)
        for is_kind in (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    )


def numbers(values: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    filled = values.cast(kind)
    return np.asarray(filled.fill_null(0) if filled.null_count else filled)


def decimals(values: pa.Array, logical: Logical, valid: Bools) -> tuple[Bytes, Longs]:
    big = big_endian(values, logical)
    sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    differs = big != sign
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
    top = big[np.arange(len(big)), first] >= 0x80
    first = first - ((top != (sign[:, 0] > 0)) & (first > 0))
    keep = (np.arange(16) >= first[:, None]) & valid[:, None]
    return big[keep], (16 - first).astype(np.int64)


def big_endian(values: pa.Array, logical: Logical) -> Bytes:
    if not is_number(values.type):
        raise CannotWrite("not a number")
    found = values.cast(pa.decimal128(logical.precision, logical.scale))
    data = np.frombuffer(found.buffers()[1] or b"", np.uint8)
    raw = data[found.offset * 16 : (found.offset + len(found)) * 16].reshape(-1, 16)
    return np.ascontiguousarray(raw[:, ::-1])


def varints(values: Longs, present: Bools) -> pa.Array:
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    size = np.ones(len(values), np.int64)
    rest = zigzag >> np.uint64(7)
    while rest.any():
        size += rest > 0
        rest >>= np.uint64(7)
    place = np.arange(int(size.max(initial=1)))
    byte = (zigzag[:, None] >> (7 * place).astype(np.uint64)).astype(np.uint8) & 0x7F
    byte |= np.where(place < size[:, None] - 1, 0x80, 0).astype(np.uint8)
    used = (place < size[:, None]) & present[:, None]
    return piece(np.where(present, size, 0), byte[used].view(np.uint8))


def only(values: pa.Array, present: Bools) -> pa.Array:
    if present.all():
        return values
    return pc.if_else(pa.array(present), values, pa.scalar(b"", pa.binary()))


def piece(sizes: Longs, data: Bytes) -> pa.Array:
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def joined(pieces: list[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, b"")
