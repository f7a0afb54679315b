"""Brings the RocksDB copy of a partition to the batch that a task wants to read."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.copies.rocks_open import open_copy, wipe
from kaflow_engine.state.copies.snapshots import restore, snapshot_batches
from kaflow_engine.state.hints import NEW_ID_REPEATS
from kaflow_engine.state.log.batch_log import FIRST, BatchLog
from kaflow_engine.state.log.changes import ChangeFile, read_changes
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, Store

EMPTY = FIRST - 1
"""The batch after which every state is empty."""
_ONE_FILE = 8 << 20
"""Bytes of changes from which on those of several batches become a file of a copy."""


def ready_copy(
    root: Path, partition: str, ref: StateRef, upto: int, log: BatchLog, snapshots: Store
) -> RocksCopy:
    """Open the copy of a partition with the state as it was after a batch.

    A copy that is behind gets the change files it lacks. One that is ahead, of another state,
    damaged, or lost is built again from the newest sound snapshot and the change files since.

    Args:
        root: Directory of the copies.
        partition: State partition, `<step>-<p>`.
        ref: The state.
        upto: The batch whose outcome is to be read: N-1 for batch N, 0 for the empty state.
        log: Commits and change files up to `upto`.
        snapshots: The snapshot store.

    Returns:
        The copy; its `applied` is `upto`. Close it, or use it in a `with`.

    Raises:
        StateError: Neither the copy nor any snapshot leads there; says what is missing.
    """
    path = root / partition
    copy = _usable(path, ref, upto)
    if copy is not None:
        try:
            return catch_up(copy, partition, ref, upto, log)
        except Damaged:
            copy.close(settle=False)
        except BaseException:
            copy.close(settle=False)
            raise
    _rebuild(path, partition, ref, upto, log, snapshots)
    return open_copy(path, ref)


def _usable(path: Path, ref: StateRef, upto: int) -> RocksCopy | None:
    if not path.exists():
        return None
    try:
        copy = open_copy(path, ref)
    except Damaged:
        return None
    if copy.foreign or copy.applied is None or copy.applied > upto:
        copy.close()
        return None
    return copy


def catch_up(copy: RocksCopy, partition: str, ref: StateRef, upto: int, log: BatchLog) -> RocksCopy:
    """Apply the change files that a copy lacks up to a batch; return the copy.

    Raises:
        Damaged: One of them, or its commit, is missing or not sound.
    """
    changes: list[pa.Table] = []
    size = 0
    for batch in range((copy.applied or EMPTY) + 1, upto + 1):
        file = changed_in(batch, partition, ref, log)
        if file is None:
            continue
        changes.append(read_changes(log.store, ref, batch, partition, file))
        size += changes[-1].nbytes
        if size >= _ONE_FILE:
            copy.apply(pa.concat_tables(changes), batch)
            changes, size = [], 0
    if changes:
        copy.apply(pa.concat_tables(changes), upto)
    else:
        copy.advance(upto)
    return copy


def changed_in(batch: int, partition: str, ref: StateRef, log: BatchLog) -> ChangeFile | None:
    """Return what a batch changed in a partition; Damaged if its commit is missing or not sound."""
    commit = log.load_commit(batch)
    if commit.generation != ref.generation:
        raise Damaged(f"batch {batch} belongs to generation {commit.generation} of the state")
    return commit.changes.get(partition)


def _rebuild(
    path: Path, partition: str, ref: StateRef, upto: int, log: BatchLog, snapshots: Store
) -> None:
    fresh = path.with_name(f"{path.name}.rebuilt")
    failures: list[Damaged] = []
    for base in _bases(snapshots, upto):
        wipe(fresh)
        try:
            _start(fresh, partition, ref, base, snapshots)
            with open_copy(fresh, ref) as copy:
                catch_up(copy, partition, ref, upto, log).advance(upto, store=True)
        except Damaged as failure:
            failures.append(failure)
            continue
        wipe(path)
        fresh.rename(path)
        return
    wipe(fresh)
    tried = "; ".join(dict.fromkeys(failure.message for failure in failures))
    raise StateError(
        f"state partition '{partition}' cannot be brought to batch {upto}: {tried}",
        hint=f"restore what is missing or damaged from a backup, or {NEW_ID_REPEATS}",
    ) from failures[0]


def _bases(snapshots: Store, upto: int) -> Iterator[int]:
    for batch in snapshot_batches(snapshots):
        if EMPTY < batch <= upto:
            yield batch
    yield EMPTY


def _start(path: Path, partition: str, ref: StateRef, base: int, snapshots: Store) -> None:
    if base == EMPTY:
        with open_copy(path, ref) as copy:
            copy.advance(base, store=True)
    else:
        restore(snapshots, ref, base, partition, path)
