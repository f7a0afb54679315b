"""The live stream of a pipeline whose topics Spark reads: its streaming query brings records."""

import shutil
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import DrainIncomplete, KaflowError, RunError
from kaflow_engine.flow.graph import gathered_for
from kaflow_engine.runtime.batch.run import Run
from kaflow_engine.runtime.batch.stop import Ending
from kaflow_engine.runtime.drive.ticker import Ticker
from kaflow_engine.runtime.failures.failures import to_error
from kaflow_engine.runtime.source.kafka import stream_frame
from kaflow_engine.runtime.source.offsets import logged_ends, merged
from kaflow_engine.state.log.batch_log import Offsets

_POLL_S = 0.05
_ALIVE_EVERY_S = 0.5


class LiveStream:
    """A streaming query whose batches are logged, run and committed by us.

    Spark's own checkpoint only tells it what it has read; it is thrown away with the query.
    """

    def __init__(self, run: Run, kafka: KafkaSettings, checkpoint: Path, interval: int) -> None:
        self._run, self._kafka, self._checkpoint = run, kafka, checkpoint
        self._gather_s = max(interval, gathered_for(run.plan)) / 1000
        self._lock = threading.Lock()  # held while a batch runs, or while none may begin
        self._wake = threading.Event()
        self._closing = False
        self._ended = threading.Event()
        self._failure: KaflowError | None = None
        self._ticker = Ticker(run)

    def follow(self, start: Offsets, goal: Offsets | None) -> Ending:
        """Run batches until a limit is reached.

        Args:
            start: The next offset of every partition.
            goal: Where to end; None: nowhere.

        Raises:
            KaflowError: A batch or the stream failed; what was not committed is still open.
            DrainIncomplete: The running batch did not end in time.
        """
        run = self._run
        if ending := self._ticker.ending(goal):
            return ending
        if goal is not None:
            self._gather_s = 0.0  # what comes meanwhile is not read
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        frame = stream_frame(
            run.spark,
            self._kafka,
            run.plan.pipeline,
            start,
            run.limit.records,
        )
        writer = frame.writeStream.foreachBatch(self._on_records)
        query = writer.option("checkpointLocation", f"file:{self._checkpoint}").start()
        try:
            return self._watch(query, goal)
        finally:
            self._close(query)

    def _watch(self, query: StreamingQuery, goal: Offsets | None) -> Ending:
        looked = time.monotonic()
        while True:
            self._wake.wait(_POLL_S)
            self._wake.clear()
            if self._failure is not None:
                raise self._failure
            if ending := self._ticker.ending(goal):
                return ending
            self._tick(goal)
            if time.monotonic() - looked > _ALIVE_EVERY_S:
                looked = time.monotonic()
                if not query.isActive:
                    failure = query.exception()
                    raise to_error(failure or RunError("the stream ended"), "reading its topics")

    def _on_records(self, frame: DataFrame, spark_batch: int) -> None:
        """Take one micro-batch; never raises, because Spark would wrap that in pages of stack."""
        with self._lock:
            if self._closing or self._run.ending is not None:
                return  # whatever Spark thinks it delivered is read again by the next run
            try:
                at = self._run.standing.offsets
                ends = logged_ends(self._checkpoint, spark_batch)
                self._run.take(merged(at, ends), frame)
                self._ticker.batch_ended()
            except Exception as error:
                self._failure = to_error(error, "running a batch")
                self._closing = True
            finally:
                self._wake.set()
        self._gather()

    def _gather(self) -> None:
        """Let records gather before the next batch; not while behind."""
        if self._run.keeps_up:
            self._ended.wait(self._gather_s)

    def _tick(self, goal: Offsets | None) -> None:
        if not self._run.standing.next_due or not self._lock.acquire(blocking=False):
            return
        try:
            if not self._closing:
                self._ticker.tick(goal)
        finally:
            self._lock.release()

    def _close(self, query: StreamingQuery) -> None:
        """End the query between two batches.

        `stop()` during a call of foreachBatch kills Spark's stream thread with a page of stack;
        from here on calls return at once and without asking Spark for anything.
        """
        if not self._lock.acquire(timeout=self._run.drain_seconds):
            raise DrainIncomplete(
                f"batch {self._run.standing.batch + 1} of pipeline '{self._run.plan.name}' did "
                f"not end within {self._run.drain_seconds:g} s",
                hint="it runs again at the next start; raise 'drain_deadline' to wait longer",
            )
        self._closing = True
        self._ended.set()
        self._lock.release()
        try:
            query.stop()
        except Exception as error:
            if self._failure is None:
                raise to_error(error, "stopping the stream") from error
        shutil.rmtree(self._checkpoint, ignore_errors=True)
