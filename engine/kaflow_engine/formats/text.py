"""Bytes as text: those values that are UTF-8, and why others are not."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaflow_engine.formats.decoded import BadValue


@dataclass(frozen=True, slots=True)
class Texts:
    """Values that are text."""

    values: pa.Array
    """string"""
    rows: pa.Array
    """int64: the input row of each value"""

    def keep(self, mask: pa.Array) -> "Texts":
        """Return those where a mask is true."""
        return Texts(self.values.filter(mask), self.rows.filter(mask))


def texts_of(values: pa.Array | pa.ChunkedArray) -> tuple[Texts, list[BadValue]]:
    """Read values (binary, none null) as UTF-8; the others are bad."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    texts = Texts(array, pa.array(np.arange(len(array))))
    try:
        return Texts(array.cast(pa.string()), texts.rows), []
    except pa.ArrowInvalid:
        broken = dict(_broken(array))
    mask = np.ones(len(array), np.bool_)
    mask[list(broken)] = False
    good = texts.keep(pa.array(mask))
    bad = [BadValue(row, "NotUtf8", why) for row, why in broken.items()]
    return Texts(good.values.cast(pa.string()), good.rows), bad


def _broken(array: pa.Array) -> Iterator[tuple[int, str]]:
    """Find the values that are no text: only those with a byte beyond ASCII can be."""
    array = array.cast(pa.binary())
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
    beyond = np.flatnonzero(np.frombuffer(array.buffers()[2], np.int8) < 0)
    beyond = beyond[(beyond >= offsets[0]) & (beyond < offsets[-1])]
    for row in np.unique(np.searchsorted(offsets, beyond, side="right") - 1).tolist():
        if why := _not_text(array[row].as_py()):
            yield row, why


def _not_text(value: bytes) -> str | None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"the value is not UTF-8: byte {value[error.start]:#04x} at {error.start}"
    return None
