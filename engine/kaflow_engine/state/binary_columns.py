"""Concatenation and slicing of binary columns without a loop over rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Items = np.ndarray[Any, Any]
_LONG = 8


def fixed(items: Items) -> pa.BinaryArray:
    """Return the items of a structured array as one binary value each."""
    width = pa.binary(items.dtype.itemsize)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(items))]
    return pa.FixedSizeBinaryArray.from_buffers(width, len(items), buffers).cast(pa.binary())


def joined(*parts: Any) -> pa.BinaryArray:
    """Return the values of binary columns one behind the other; null where one of them is."""
    return pc.binary_join_element_wise(*parts, b"")


def heads(values: pa.BinaryArray, kind: np.dtype[Any]) -> Items:
    """Return what stands at the head of each value, none of which is null or shorter."""
    if not len(values):
        return np.zeros(0, kind)
    starts, data = contents(values)
    if starts[-1] - starts[0] == len(values) * kind.itemsize:
        return data[starts[0] : starts[-1]].view(kind)
    places = starts[:-1, None] + np.arange(kind.itemsize)
    return data[places].view(kind).reshape(-1)


def pieces(values: pa.BinaryArray, starts: Items, lengths: Items) -> pa.BinaryArray:
    """Return of each value the piece of a length that begins at a place of its own."""
    if not len(values):
        return pa.array([], pa.binary())
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    begins, data = contents(values)
    moved = np.repeat(begins[:-1] + starts - offsets[:-1], lengths)
    found = data[moved + np.arange(offsets[-1])]
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(found)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def ordered_words(values: pa.BinaryArray) -> pa.ListArray:
    """Return values as lists of 64-bit integers that stand in the same order.

    Values that differ in length differ before the end of the shorter one, or not by zeros alone.
    """
    lengths = pc.binary_length(values).to_numpy().astype(np.int64)
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(-(-lengths // _LONG), out=offsets[1:])
    padded = np.zeros(offsets[-1] * _LONG, np.uint8)
    begins, data = contents(values)
    moved = np.repeat(offsets[:-1] * _LONG - begins[:-1], lengths)
    padded[moved + np.arange(begins[0], begins[0] + len(moved))] = data[begins[0] : begins[-1]]
    words = padded.view(">u8").astype(np.uint64) ^ np.uint64(1 << 63)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(words.view(np.int64)))


def bytes_of_lists(lists: pa.ListArray) -> pa.BinaryArray:
    """Return lists of 64-bit integers as bytes; null stays null."""
    if lists.null_count == len(lists):
        return pa.nulls(len(lists), pa.binary())
    whole = lists.take(pa.array(np.arange(len(lists)))) if lists.offset else lists
    numbers = np.ascontiguousarray(whole.values.to_numpy())
    offsets = (whole.offsets.to_numpy() * _LONG).astype(np.int32)
    buffers = [whole.buffers()[0], pa.py_buffer(offsets), pa.py_buffer(numbers)]
    return pa.Array.from_buffers(pa.binary(), len(whole), buffers)


def lists_of_bytes(values: pa.BinaryArray) -> pa.ListArray:
    """Return what `bytes_of_lists` made of lists."""
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.list_(pa.int64()))
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy() // _LONG
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    joint = b"".join(pc.fill_null(values, b"").to_pylist())
    missing = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(np.frombuffer(joint, np.int64)), mask=missing
    )


def lists_of(numbers: Items) -> pa.ListArray:
    """Return the rows of a two-dimensional array of integers as lists."""
    count, width = numbers.shape
    offsets = np.arange(0, count * width + 1, width, dtype=np.int32)
    flat = np.ascontiguousarray(numbers, dtype=np.int64).reshape(-1)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))


def rows_of(lists: pa.ListArray, width: int) -> Items:
    """Return lists of one length as the rows of an array; none of them is null."""
    return lists.flatten().to_numpy().reshape(-1, width)


def contents(values: pa.BinaryArray) -> tuple[Items, Items]:
    """Return where each value begins, and the last one ends, and the bytes of all."""
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return starts.astype(np.int64), content


def ascend(values: pa.BinaryArray | pa.ChunkedArray) -> bool:
    """Tell whether each value is greater than the one before, and none is null."""
    less = pc.less(values.slice(0, max(len(values) - 1, 0)), values.slice(1))
    return not values.null_count and pc.all(less).as_py() is not False


def put_back(values: pa.BinaryArray, order: Items) -> pa.BinaryArray:
    """Return values, which stand in an order of what was asked for, as it was asked for.

    Args:
        values: One for each place.
        order: The place of each.
    """
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return values.take(pa.array(back))
