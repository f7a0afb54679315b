"""The rows of a page, as a file of the state directory: Arrow, behind a checksum."""

from collections.abc import Iterator, Sequence
from zlib import crc32

import pyarrow as pa

from kaflow_engine.state.storage.store import Damaged, Store

CHUNK = 16_384
"""Rows of one Arrow batch."""
_SCHEMA = pa.schema([pa.field("value", pa.binary())])
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")
_SUM = 8
"""Bytes of the checksum; what follows stays aligned."""


def keep_rows(store: Store, name: str, rows: Sequence[bytes]) -> None:
    """Write rows; once it returns, they survive a power cut."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, _SCHEMA, options=_PACKED) as file:
        for begin in range(0, len(rows), CHUNK):
            some = pa.array(rows[begin : begin + CHUNK], pa.binary())
            file.write_batch(pa.record_batch([some], schema=_SCHEMA))
    data = out.getvalue().to_pybytes()
    store.put(name, crc32(data).to_bytes(_SUM, "big") + data)


def kept_rows(store: Store, name: str, start: int, end: int) -> Iterator[pa.Array]:
    """Yield the rows of a range, counted from the first one of the file.

    Raises:
        Damaged: They cannot be read, or are not those that were written.
    """
    data = memoryview(store.get(name))
    if crc32(data[_SUM:]) != int.from_bytes(data[:_SUM], "big"):
        raise Damaged(f"'{name}' is damaged", hint="restore this file from a backup")
    file = pa.ipc.open_file(pa.py_buffer(data[_SUM:]))
    for number in range(start // CHUNK, min(file.num_record_batches, -(-end // CHUNK))):
        values = file.get_batch(number).column(0)
        low = max(0, start - number * CHUNK)
        yield values.slice(low, min(end - number * CHUNK, len(values)) - low)
