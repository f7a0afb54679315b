"""Change files: what one task of one batch did to one state partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.binary_columns import ascend
from kaflow_engine.state.hints import FROM_BACKUP
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, Store

CHANGES = pa.schema([pa.field("key", pa.binary()), pa.field("value", pa.binary())])
"""Puts and, where the value is null, deletes; the last row of a key counts."""


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A change file as a commit names it."""

    file: str
    """Name in the log store, `changes/<batch>/<partition>.<epoch>.arrow`."""
    sha256: str
    rows: int


def to_changes(keys: Sequence[bytes], values: Sequence[bytes | None]) -> pa.Table:
    """Build a change table from keys and values; None deletes."""
    columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    return pa.Table.from_arrays(columns, schema=CHANGES)


def change_lists(changes: pa.Table | pa.RecordBatch) -> tuple[list[bytes], list[bytes | None]]:
    """Return keys and values as Python lists."""
    keys = cast(list[bytes], changes.column("key").to_pylist())
    return keys, cast("list[bytes | None]", changes.column("value").to_pylist())


def last_per_key(changes: pa.Table) -> pa.Table:
    """Return the changes with the last row of each key, sorted by key.

    Sorted, so that a replay writes the same bytes and RocksDB takes them fastest.

    Raises:
        ValueError: A key is null or empty.
    """
    table = changes.select(CHANGES.names).cast(CHANGES).combine_chunks()
    if not table.num_rows:
        return table
    ordered = ascend(table.column("key"))
    table = table if ordered else table.take(pc.sort_indices(table.column("key")))
    keys = table.column("key")
    if keys.null_count or not keys[0].as_py():
        raise ValueError("a state key must not be null or empty")
    if ordered:
        return table
    last = pc.not_equal(keys.slice(0, table.num_rows - 1), keys.slice(1))
    if pc.all(last).as_py():
        return table
    return table.filter(pa.chunked_array([*last.chunks, pa.array([True])]))


def write_changes(
    store: Store, ref: StateRef, batch: int, partition: str, epoch: int, changes: pa.Table
) -> ChangeFile | None:
    """Write the changes of one partition, durably; None if there are none.

    Writing them again, as a replay in the same epoch does, replaces the file.

    Args:
        store: The log store.
        ref: The state they belong to.
        batch: The batch that makes them.
        partition: State partition, `<step>-<p>`.
        epoch: Run epoch of the writer.
        changes: Schema CHANGES, later rows win.
    """
    table = last_per_key(changes)
    if not table.num_rows:
        return None
    file = f"changes/{batch}/{partition}.{epoch}.arrow"
    table = table.replace_schema_metadata(_belongs_to(ref, batch, partition))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=_WRITE) as writer:
        writer.write_table(table)
    data = memoryview(sink.getvalue())
    store.put(file, data)
    return ChangeFile(file, sha256(data).hexdigest(), table.num_rows)


def read_changes(
    store: Store, ref: StateRef, batch: int, partition: str, file: ChangeFile
) -> pa.Table:
    """Read the changes that a commit names: schema CHANGES, one row per key, sorted.

    Raises:
        Damaged: The file is missing, is not what was committed, or belongs elsewhere.
    """
    data = store.get(file.file)
    if sha256(data).hexdigest() != file.sha256:
        raise Damaged(
            f"change file '{file.file}' is damaged: its checksum is wrong", hint=FROM_BACKUP
        )
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    if table.schema.metadata != _belongs_to(ref, batch, partition):
        raise Damaged(
            f"change file '{file.file}' belongs to another state, batch or partition",
            hint=FROM_BACKUP,
        )
    return table.replace_schema_metadata(None)


_WRITE = pa.ipc.IpcWriteOptions(compression="lz4")


def _belongs_to(ref: StateRef, batch: int, partition: str) -> dict[bytes, bytes]:
    return {
        b"state_id": ref.state_id.encode(),
        b"generation": str(ref.generation).encode(),
        b"batch": str(batch).encode(),
        b"partition": partition.encode(),
    }
