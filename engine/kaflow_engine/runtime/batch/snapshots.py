"""Takes snapshots of a pipeline's state between batches, and deletes files they make obsolete."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import state_names
from kaflow_engine.runtime.batch.checkpoint_upload import Checkpointer
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.jobs.executor import Shipment
from kaflow_engine.runtime.tasks.crash import CrashPoint, crash_point
from kaflow_engine.runtime.tasks.snapshot_task import SNAPSHOT, snapshot_partition, snapshot_task
from kaflow_engine.state.copies.snapshots import complete_snapshot, prune_snapshots
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.copy_location import InState
from kaflow_engine.state.storage.store import Store
from kaflow_engine.telemetry.progress import CheckpointMark

Take = Callable[[Sequence[str], int], Mapping[str, str]]
"""Takes names of state partitions and a batch, stores them as they are after it, and returns for
each what `complete_snapshot` wants of it."""


def in_this_process(directory: Path, ref: StateRef, log: BatchLog, store: Store) -> Take:
    """Return what takes snapshots of copies that lie in the state directory."""
    place = InState(directory)

    def take(names: Sequence[str], batch: int) -> Mapping[str, str]:
        return {name: snapshot_partition(place, ref, log, store, name, batch) for name in names}

    return take


def in_tasks(spark: SparkSession, shipment: Shipment) -> Take:
    """Return what takes snapshots in tasks, where the driver cannot reach their copies."""

    def take(names: Sequence[str], batch: int) -> Mapping[str, str]:
        if not names:
            return {}
        numbers = spark.range(0, len(names), 1, len(names))
        task = partial(snapshot_task, shipment.data, batch, names)
        return {row["name"]: row["digest"] for row in numbers.mapInArrow(task, SNAPSHOT).collect()}

    return take


class SnapshotKeeper:
    """Takes a snapshot whenever the interval has passed, and has it carried away."""

    def __init__(
        self,
        take: Take,
        log: BatchLog,
        ref: StateRef,
        store: Store,
        interval: int,
        checkpointer: Checkpointer | None = None,
    ) -> None:
        """Keep the snapshots of a state.

        Args:
            take: Stores those of its partitions.
            log: The batch log.
            ref: The state.
            store: The snapshot store.
            interval: Milliseconds between two snapshots.
            checkpointer: Carries them to the bucket.
        """
        self._take, self._log, self._ref, self._store = take, log, ref, store
        self._interval = interval / 1000
        self._last = time.monotonic()
        self._checkpointer = checkpointer

    def after_batch(self, plan: Flow, standing: Position, now: int) -> int | None:
        """Take a snapshot if it is time; return the oldest batch still kept if others went.

        Args:
            plan: Whose steps have state.
            standing: After the batch; none must be running.
            now: Epoch milliseconds.
        """
        carrier = self._checkpointer
        if time.monotonic() - self._last < self._interval or (carrier and carrier.busy):
            return None
        oldest = self.take(plan, standing, now)
        if carrier is not None:
            carrier.offer(standing.batch, now)
        return oldest

    @property
    def mark(self) -> CheckpointMark | None:
        """The newest checkpoint; None where none are wanted."""
        return None if self._checkpointer is None else self._checkpointer.mark

    def take_first(self, plan: Flow, standing: Position, now: int) -> None:
        """Take a snapshot that the checkpoints begin with, where the topic alone cannot."""
        if self._checkpointer is not None and self._checkpointer.wants_first:
            self.take(plan, standing, now)
            self._checkpointer.carry_first(standing.batch, now)

    def take(self, plan: Flow, standing: Position, now: int) -> int | None:
        """Take a snapshot; as `after_batch` otherwise."""
        _pass("before_snapshot", standing)
        taken = self._take(state_partitions(plan), standing.batch)
        _pass("snapshot_copied", standing)
        complete_snapshot(self._store, self._ref, standing.batch, now, taken)
        self._last = time.monotonic()
        _pass("snapshot_taken", standing)
        return prune_snapshots(self._store, self._log, self._ref)


def state_partitions(plan: Flow) -> list[str]:
    """Return the names of all state partitions of a plan: those of its steps and of its ledger."""
    return [f"{step}-{p}" for step in state_names(plan) for p in range(plan.partitions)]


def _pass(point: CrashPoint, standing: Position) -> None:
    crash_point(point, standing.batch, os.getpid())
