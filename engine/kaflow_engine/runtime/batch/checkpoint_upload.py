"""Uploads snapshots as checkpoints beside the batches, and deletes outdated ones."""

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from kaflow_engine.errors import TakenOver
from kaflow_engine.state.checkpoints.checkpoints import (
    Checkpoints,
    Head,
    Listed,
    kept,
    settled_files,
)
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.storage.bucket import BucketAway, ObjectChanged
from kaflow_engine.state.storage.store import LocalStore
from kaflow_engine.telemetry.progress import CheckpointMark

LOGGER = logging.getLogger("kaflow.checkpoints")


class Checkpointer:
    """The one writer of a pipeline's checkpoints; uploads run in a thread, one at a time."""

    def __init__(
        self, checkpoints: Checkpoints, store: LocalStore, state: StateRecord, epoch: int
    ) -> None:
        self._checkpoints, self._store, self._state = checkpoints, store, state
        self._epoch = epoch
        self._head: Head | None = None
        self._tag: str | None = None
        self._in_doubt: Head | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._upload: Future[None] | None = None
        self._failures = 0
        self.wants_first = False
        """Whether the log holds batches that neither a checkpoint nor the topic can bring back."""

    def take_over(self) -> None:
        """Become the writer: whoever wrote before can no longer.

        Where the store does not answer, the next checkpoint tries again: the pipeline's topic keeps
        what has no checkpoint.

        Raises:
            TakenOver: A newer run has taken over already.
            Damaged: The head cannot be read.
        """
        try:
            self._take_over()
        except BucketAway as error:
            LOGGER.warning("going on without checkpoints: %s", error.message)

    def _take_over(self) -> Head:
        found = self._checkpoints.head()
        before, self._tag = found or (None, None)
        if before is not None and before.epoch > self._epoch and before.ref == self._state.ref:
            raise self._replaced()
        ours = before is not None and before.ref == self._state.ref
        self.wants_first = not ours and BatchLog(self._store).last_commit() is not None
        head = Head(
            epoch=self._epoch,
            state_id=self._state.state_id,
            generation=self._state.generation,
            files=settled_files(self._store),
            checkpoints=before.checkpoints if before is not None and ours else (),
        )
        if self.wants_first:  # what is there counts until the first one of this state
            self._head = head
        else:
            self._publish(head)
        return head

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being carried, and must stay where it is."""
        return self._upload is not None and not self._upload.done()

    @property
    def mark(self) -> CheckpointMark:
        """The newest checkpoint that counts."""
        listed = self._head.checkpoints if self._head else ()
        if not listed:
            return CheckpointMark(failures=self._failures)
        newest = listed[0]
        return CheckpointMark(newest.batch, newest.created_ms, newest.bytes, self._failures)

    @property
    def covered(self) -> int:
        """Up to which batch the oldest checkpoint goes; 0 while there are too few to rely on."""
        listed = self._head.checkpoints if self._head else ()
        return listed[-1].batch if len(listed) > 1 else 0

    def offer(self, batch: int, now: int) -> None:
        """Carry the snapshot of a batch, unless one is being carried.

        Args:
            batch: Of a complete local snapshot.
            now: Epoch milliseconds.

        Raises:
            TakenOver: Another run has taken over.
        """
        if not self.busy:
            self._settle()
            self._upload = self._thread.submit(self._carry, batch, now)

    def carry_first(self, batch: int, now: int) -> None:
        """Carry a snapshot and wait for it; what goes wrong is raised."""
        self._carry(batch, now)
        self.wants_first = False

    def close(self, patience: float) -> None:
        """End after the running upload, or without it once seconds have passed."""
        if self._upload is not None:
            try:
                self._upload.exception(patience)
            except TimeoutError:
                LOGGER.warning("a checkpoint is not complete; the one before it counts")
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _carry(self, batch: int, now: int) -> None:
        start = time.monotonic()
        head = self._head or self._take_over()
        newest = self._checkpoints.upload(self._store, head.ref, batch, now)
        self._publish(replace(head, checkpoints=kept(head.checkpoints, newest)))
        _say(newest, time.monotonic() - start)
        self._checkpoints.prune(self._head or head)

    def _publish(self, head: Head) -> None:
        self._settle_doubt()
        self._in_doubt = head
        try:
            self._tag = self._checkpoints.put_head(head, self._tag)
        except ObjectChanged as error:
            raise self._replaced() from error
        self._head, self._in_doubt = head, None

    def _settle_doubt(self) -> None:
        """Look whether the last head was written although the store did not say so."""
        found = self._checkpoints.head() if self._in_doubt is not None else None
        if found is not None and found[0] == self._in_doubt:
            self._tag = found[1]
        self._in_doubt = None

    def _settle(self) -> None:
        """Look how the last upload ended: a store that fails must not end the stream."""
        failure = self._upload.exception() if self._upload is not None else None
        if isinstance(failure, TakenOver):
            raise failure
        if failure is not None:
            self._failures += 1
            LOGGER.warning("no checkpoint was written: %s", failure)

    def _replaced(self) -> TakenOver:
        return TakenOver(
            f"another run of pipeline '{self._checkpoints.pipeline}' has taken over its "
            f"checkpoints in {self._checkpoints.bucket}",
            hint="a pipeline has one run at a time; stop this one",
        )


def _say(done: Listed, seconds: float) -> None:
    size = done.bytes / 2**20
    LOGGER.info("checkpoint of batch %d: %.1f MiB in %.1f s", done.batch, size, seconds)
