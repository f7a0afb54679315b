"""Confluent framing: a zero byte, the schema's id as four bytes, big-endian, and the payload."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.decoded import BadValue
from kaflow_engine.formats.schema_registry import UnknownSchema

Longs = npt.NDArray[np.int64]

HEADER = 5


@dataclass(frozen=True, slots=True)
class Framed:
    """Values, and where in their buffer each begins and ends."""

    values: pa.Array
    """binary"""
    start: Longs
    end: Longs
    by_schema: tuple[tuple[int, Longs], ...]
    """Each id with the rows that name it, ascending."""
    bad: tuple[BadValue, ...]
    """What is not framed."""

    def payload(self, row: int) -> bytes:
        """Return what follows the header of a value."""
        return self.values[row].as_py()[HEADER:]

    def with_schemas(
        self, schema_by_id: Callable[[int], str], bad: list[BadValue]
    ) -> Iterator[tuple[int, str, Longs]]:
        """Yield each id, its schema and its rows; rows whose schema is not known are bad."""
        for schema_id, rows in self.by_schema:
            try:
                yield schema_id, schema_by_id(schema_id), rows
            except UnknownSchema:
                bad += unknown(schema_id, rows, "is not in the registry")
            except ModelError as error:
                bad += unknown(schema_id, rows, error)


def header(schema_id: int) -> bytes:
    """Return what stands before a payload."""
    return b"\0" + schema_id.to_bytes(4, "big")


def framed(values: pa.Array | pa.ChunkedArray) -> Framed:
    """Read the headers of values (binary, none null)."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    array = array.cast(pa.binary())
    offsets = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    start, end = offsets[:-1], offsets[1:]
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    size = end - start
    bad: list[BadValue] = []
    for row in np.flatnonzero(size < HEADER):
        bad.append(BadValue(int(row), "NotFramed", f"only {size[row]} bytes, the header has 5"))
    rows = np.flatnonzero(size >= HEADER)
    magic = data[start[rows]] if len(rows) else np.empty(0, np.uint8)
    for row, byte in zip(rows[magic != 0], magic[magic != 0], strict=True):
        bad.append(BadValue(int(row), "NotFramed", f"starts with byte {byte:#04x} instead of 0x00"))
    rows = rows[magic == 0]
    head = data[start[rows][:, None] + np.arange(1, HEADER)]
    ids = np.ascontiguousarray(head).view(">i4").ravel() if len(rows) else np.empty(0, np.int32)
    by_schema = tuple((int(each), rows[ids == each]) for each in np.unique(ids))
    return Framed(array, start, end, by_schema, tuple(bad))


def unknown(schema_id: int, rows: Longs, error: str | ModelError) -> list[BadValue]:
    """Return the mistake of all values whose schema cannot be used."""
    return [BadValue(int(row), "UnknownSchema", f"schema {schema_id}: {error}") for row in rows]
