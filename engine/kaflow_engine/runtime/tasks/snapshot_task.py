"""Takes the snapshot of one state partition, where its copy is."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kaflow_engine.runtime.tasks.level_task import begun
from kaflow_engine.state.copies.copies import ready_copy
from kaflow_engine.state.copies.snapshots import take_snapshot
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.copy_location import CopyPlace, copy_root
from kaflow_engine.state.storage.store import LocalStore, Store

SNAPSHOT = "name string, digest string"
"""What a task returns: a state partition, and what `complete_snapshot` wants of it."""


def snapshot_partition(
    place: CopyPlace, ref: StateRef, log: BatchLog, store: Store, partition: str, batch: int
) -> str:
    """Take the snapshot of a partition as it is after a batch; return its digest.

    Args:
        place: Where copies are.
        ref: The state.
        log: The batch log.
        store: The snapshot store.
        partition: State partition, `<step>-<p>`.
        batch: The last one that is committed.
    """
    with (
        copy_root(place, partition) as root,
        ready_copy(root, partition, ref, batch, log, store) as copy,
    ):
        return take_snapshot(store, ref, partition, copy)


def snapshot_task(
    settings: bytes, batch: int, names: Sequence[str], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Take the snapshots of the partitions that `numbers` (column 0) point to in `names`."""
    with begun(settings, batch) as (found, _):
        mine = [names[int(n)] for table in numbers for n in table.column(0).to_pylist()]
        log = BatchLog(LocalStore(found.directory))
        about = found.place, found.state, log, found.snapshots
        digests = [snapshot_partition(*about, name, batch) for name in mine]
    yield pa.record_batch([pa.array(mine), pa.array(digests)], names=["name", "digest"])
