"""Takes snapshots of a pipeline's state between batches, and forgets what they make needless."""

import os
import time
from pathlib import Path

from kaflow_engine.operators.params import Plan
from kaflow_engine.runtime.crash import CrashPoint, crash_point
from kaflow_engine.runtime.standing import Standing
from kaflow_engine.runtime.worker import COPIES
from kaflow_engine.state.copies import ready_copy
from kaflow_engine.state.log import BatchLog
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.snapshots import complete_snapshot, prune_snapshots, take_snapshot
from kaflow_engine.state.store import Store


class SnapshotKeeper:
    """Takes a snapshot whenever the interval has passed."""

    def __init__(
        self, directory: Path, log: BatchLog, ref: StateRef, store: Store, interval: int
    ) -> None:
        self._directory, self._log, self._ref, self._store = directory, log, ref, store
        self._interval = interval / 1000
        self._last = time.monotonic()

    def after_batch(self, plan: Plan, standing: Standing, now: int) -> int | None:
        """Take a snapshot if it is time; return the oldest batch still kept if others went.

        Args:
            plan: Whose steps have state.
            standing: After the batch; none must be running.
            now: Epoch milliseconds.
        """
        if time.monotonic() - self._last < self._interval:
            return None
        _pass("before_snapshot", standing)
        taken: dict[str, str] = {}
        for step in range(1, len(plan.steps) + 1):
            for partition in range(plan.partitions):
                name = f"{step}-{partition}"
                with ready_copy(
                    self._directory / COPIES,
                    name,
                    self._ref,
                    standing.batch,
                    self._log,
                    self._store,
                ) as copy:
                    taken[name] = take_snapshot(self._store, self._ref, name, copy)
        _pass("snapshot_copied", standing)
        complete_snapshot(self._store, self._ref, standing.batch, now, taken)
        self._last = time.monotonic()
        _pass("snapshot_taken", standing)
        return prune_snapshots(self._store, self._log, self._ref)


def _pass(point: CrashPoint, standing: Standing) -> None:
    crash_point(point, standing.batch, os.getpid())
