"""The pipeline's own topic as its driver sees it: run epochs, fencing, markers, batch records."""

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Self

from confluent_kafka import Producer

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import Client, KafkaSettings
from kaflow_engine.connectors.kafka.replication import Replication
from kaflow_engine.connectors.kafka.run_log.control_records import (
    DRIVER,
    BatchRecord,
    ControlRecord,
    ControlView,
    Epoch,
    Marker,
    Slot,
    to_bytes,
)
from kaflow_engine.connectors.kafka.run_log.control_topic import ensure_control_topic
from kaflow_engine.connectors.kafka.run_log.run_start import run_start
from kaflow_engine.connectors.kafka.run_log.transactions import (
    ControlReader,
    control_topic,
    in_transaction,
    newest_epoch,
    open_transactional,
    transactional_id,
    write_acknowledged,
)
from kaflow_engine.connectors.run_log import Check, RunStart, no_check
from kaflow_engine.errors import StateError, TakenOver
from kaflow_engine.state.hints import NEW_ID


class ControlTopic:
    """A `RunLog` in the topic `__kaflow.<pipeline id>`, as its one driver sees it.

    Keep it for all runs of a process: a run that ended may be followed by another one of the same
    process, but not once another process has taken over.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        pipeline_id: str,
        timeout: int = 30_000,
        replication: Replication | None = None,
    ) -> None:
        self.settings = settings
        self._replication = replication or Replication()
        self.pipeline_id = pipeline_id
        self.topic = control_topic(pipeline_id)
        self._timeout = timeout
        self._driver: Client[Producer] | None = None
        self._state: tuple[str, int] = ("", 0)
        self._claimed: Marker | None = None  # the newest of the driver's own markers
        self._process = token_hex(8)
        self._before: int | None = None  # the newest epoch when this process began its last run
        self._epoch = 0, -1  # of its last run, and where that stands in the topic

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ensure(self) -> None:
        """Create the topic unless it exists, and check that it is compacted with one partition.

        Raises:
            SinkError: It cannot be created.
            SourceError: No broker answers.
            StateError: It exists, but is not fit.
        """
        ensure_control_topic(self.settings, self.topic, self._replication, self._timeout)

    def broker_time(self) -> int | None:
        """Return the clock of the broker that keeps the topic, in epoch milliseconds.

        None: it keeps the clocks of writers, and may not be told otherwise.

        Raises:
            SinkError: No broker answers, or it refuses.
        """
        nothing = to_bytes(Slot("clock", None))  # removes what never was, so nothing stays of it
        return write_acknowledged(self.settings, self.topic, [nothing], self._timeout)

    def look(self, state_id: str, generation: int) -> RunStart:
        """Return what was delivered so far, by runs that may still deliver; nothing is begun."""
        self.ensure()
        markers = self._view(committed=True)
        return run_start(markers, state_id, generation, markers.epoch, -1)

    def start_run(
        self,
        state_id: str,
        generation: int,
        check: Check = no_check,
        after: int = 0,
        doubtful: int | None = None,
    ) -> RunStart:
        """Take the next epoch (> `after`), fence everything older, and read what was delivered.

        The order is what makes it safe. A worker registers its producer before it looks for a newer
        epoch; the driver writes its epoch before it looks for producers. So a leftover of an
        earlier run is either seen and fenced here, or sees this epoch and ends itself, and nothing
        is committed after the markers were read.

        Args:
            state_id: The state the run works on.
            generation: Its generation.
            check: Called twice: before anything is written, so that a start that is refused leaves
                a live run alone, and with what that run may have delivered since.
            after: The greatest epoch found elsewhere, should the topic have been lost.
            doubtful: A batch of which only the topic knows whether it was delivered.

        Raises:
            StateError: The topic was lost while a batch was `doubtful`; or what `check` raises.
            TakenOver: Another run starts at the same time, or has replaced the one that this
                process had before.
            SinkError: The broker fails.
            SourceError: The topic cannot be read.
        """
        self.ensure()
        name = transactional_id(self.pipeline_id, "driver")
        view, markers = ControlView(), ControlView()
        reader = ControlReader(self.settings, self.topic, self._timeout, committed=False)
        committed = ControlReader(self.settings, self.topic, self._timeout, committed=True)
        try:
            view.take(reader.read_on())
            self._refuse_replaced(view)
            if doubtful is not None and not view.epoch:
                raise self._lost(doubtful)
            markers.take(committed.read_on())
            check(run_start(markers, state_id, generation, view.epoch, -1))
            self._driver = self._open(name)
            # epochs count even if their run was stopped before it could commit them
            view.take(reader.read_on())
            self._before = view.epoch
            epoch = max(view.epoch, after) + 1
            epoch_offset = self._write([Epoch(epoch, self._process)])
            self._epoch = epoch, epoch_offset
            view.take(reader.read_on())
            self._fence([slot for slot, of in view.slots.items() if of < epoch])
            markers.take(committed.read_on(reader.end()))
        finally:
            reader.close()
            committed.close()
        start = run_start(markers, state_id, generation, epoch, epoch_offset)
        check(start)
        self._state = (state_id, generation)
        self._claimed = markers.markers.get((state_id, generation, DRIVER, 0))
        return start

    def claim(self, batch: int, mark: str) -> None:
        """Note, acknowledged, that a batch is delivered otherwise than in transactions of Kafka.

        Written before the batch is committed, it ends a run that was replaced, and lets no later
        start go back behind the batch.

        Args:
            batch: Its number; lower than one that was claimed where it is run again.
            mark: Its `batch_mark`.

        Raises:
            SinkError: A newer run has started, or the broker fails.
        """
        state, generation = self._state
        if self._claimed is None or batch >= (self._claimed.batch or 0):
            self._claimed = Marker(
                state=state,
                generation=generation,
                sink=DRIVER,
                partition=0,
                batch=batch,
                epoch=self._epoch[0],
                mark=mark,
            )
        self._write([self._claimed])

    def require_newest(self) -> None:
        """Go on only while no newer run has started, as the brokers acknowledge.

        Raises:
            SinkError: A newer run has started, or the broker fails.
        """
        self._write([Epoch(self._epoch[0], self._process)])

    def put_batch(self, batch: int, record: Mapping[str, object]) -> None:
        """Keep a batch record, acknowledged.

        Raises:
            TakenOver: A newer run has started.
            SinkError: The broker fails.
        """
        self._write([self._batch(batch, record)])

    def drop_batches(self, batches: Collection[int]) -> None:
        """Remove batch records that a snapshot covers.

        Raises:
            TakenOver, SinkError: As in `put_batch`.
        """
        self._write([self._batch(batch, None) for batch in batches])

    def states(self) -> set[tuple[str, int]]:
        """Return the (state id, generation) pairs that the topic holds markers of; changes nothing.

        Raises:
            SourceError: The topic cannot be read.
        """
        if not describe(self.settings, [self.topic], self._timeout)[self.topic].exists:
            return set()
        return {(state, generation) for state, generation, _, _ in self._view().markers}

    def forget(self, states: Collection[tuple[str, int]]) -> int:
        """Remove markers and batch records of dropped states; returns how many there were.

        Raises:
            TakenOver, SinkError: As in `put_batch`.
        """
        view = self._view()
        gone: list[ControlRecord] = [
            Marker(state=state, generation=generation, sink=sink, partition=p, batch=None)
            for state, generation, sink, p in view.markers
            if (state, generation) in states
        ]
        gone += [
            BatchRecord(state=state, generation=generation, batch=batch, record=None)
            for state, generation, batch in view.batches
            if (state, generation) in states
        ]
        self._write(gone)
        return len(gone)

    def close(self) -> None:
        """Let go of the driver's producer."""
        self._driver = None

    def _view(self, committed: bool = False) -> ControlView:
        view = ControlView()
        reader = ControlReader(self.settings, self.topic, self._timeout, committed)
        try:
            view.take(reader.read_on())
        finally:
            reader.close()
        return view

    def _batch(self, batch: int, record: Mapping[str, object] | None) -> BatchRecord:
        state, generation = self._state
        return BatchRecord(state=state, generation=generation, batch=batch, record=record)

    def _write(self, records: Collection[ControlRecord]) -> int:
        if self._driver is None:
            raise StateError(
                f"no run of pipeline '{self.pipeline_id}' was started", hint="call start_run first"
            )
        if not records:
            return -1
        pairs = [to_bytes(record) for record in records]
        return in_transaction(self._driver, self.topic, pairs, self._timeout, self._is_newest)

    def _is_newest(self) -> bool:
        epoch, start = self._epoch
        return start >= 0 and newest_epoch(self.settings, self.topic, start, self._timeout) == epoch

    def _open(self, name: str) -> Client[Producer]:
        allowed = self.settings.transaction_timeout
        return open_transactional(self.settings, name, allowed, self._timeout)

    def _fence(self, slots: Collection[str]) -> None:
        if not slots:
            return

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(self._open, slots))
        self._write([Slot(slot, None) for slot in slots])

    def _refuse_replaced(self, view: ControlView) -> None:
        """Leave the successor alone: one that slept, and woke up, must not take over from it."""
        if self._before is None or view.epoch <= self._before or view.process == self._process:
            return
        raise TakenOver(
            f"another run of pipeline '{self.pipeline_id}' has taken over: run {view.epoch}",
            hint="a pipeline has one run at a time; stop this one",
        )

    def _lost(self, batch: int) -> StateError:
        return StateError(
            f"topic '{self.topic}' was deleted, and it alone knew whether batch {batch} of "
            f"pipeline '{self.pipeline_id}' was delivered",
            hint="run it once with `delivery: at_least_once`, which may write the rows of that "
            f"batch a second time, or {NEW_ID}",
        )
