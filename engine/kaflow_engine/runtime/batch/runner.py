"""`run_batch`: the one way in which a batch is run, live, recovered, loaded or ticked."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from kaflow_engine.connectors.contract import FinishedBatch, Sink
from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.flow.flow import Flow
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.operators.watermark import Place, advance, ended, holder
from kaflow_engine.runtime.batch.batch_backup import KeptBatches
from kaflow_engine.runtime.batch.beginnings import beginnings
from kaflow_engine.runtime.batch.position import Position, counted, next_due
from kaflow_engine.runtime.batch.task_metrics import changes_of, states_after, task_phases
from kaflow_engine.runtime.clock.batch_clock import wall_clock
from kaflow_engine.runtime.clock.ticks import clocks_at, due_chains
from kaflow_engine.runtime.failures.failures import to_error
from kaflow_engine.runtime.jobs.executor import ALL_TASKS, SMALL, Executed, Shipment, execute_batch
from kaflow_engine.runtime.jobs.records import Records, no_records
from kaflow_engine.runtime.jobs.resident import ResidentTask
from kaflow_engine.runtime.sink.claims import Claims
from kaflow_engine.runtime.source.offsets import ends_of, merged, size_of
from kaflow_engine.runtime.source.record_source import RecordSource
from kaflow_engine.runtime.tasks.crash import CrashPoint, crash_point
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, Ranges
from kaflow_engine.state.log.mark import batch_mark

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDone:
    """A batch that was committed."""

    watermarks: Mapping[int, int]
    """With which it ran, by chain."""
    standing: Position
    """After it."""
    report: BatchReport
    size: int
    """Offsets it read."""
    seconds: float
    phases: Mapping[str, float]
    """Milliseconds: `log`, `execute`, `commit` on the driver; those of tasks behind `task.`."""
    executed: Executed
    holder: tuple[Place, int | None] | None = None
    """The partition that holds the watermark, and its greatest event time."""


class BatchRunner:
    """Runs the batches of one run of one pipeline; one at a time."""

    def __init__(
        self,
        source: RecordSource,
        log: BatchLog,
        fingerprint: str,
        shipment: Shipment,
        tasks: Callable[[], int],
        kept: KeptBatches | None = None,
        clock: Clock = wall_clock,
        small: int = SMALL,
        sinks: Sequence[Sink] = (),
        claims: Claims | None = None,
        resident: ResidentTask | None = None,
    ) -> None:
        self.source, self.log = source, log
        self.clock = clock
        self.fingerprint, self._shipment = fingerprint, shipment
        self.connections = shipment.settings.connections
        self._tasks = tasks
        self.kept = kept
        self._small = small
        self.sinks, self._claims, self._resident = sinks, claims, resident

    @property
    def epoch(self) -> int:
        """Of this run."""
        return self._shipment.epoch

    def close(self) -> None:
        """Let go of the task that stays."""
        if self._resident is not None:
            self._resident.close()

    @cached_property
    def _nothing(self) -> Records:
        return no_records(self.source.spark)

    def run_batch(
        self,
        standing: Position,
        ranges: Ranges,
        read_to_end: tuple[tuple[str, int], ...],
        records: Records | None = None,
        bounded_end: bool = False,
        batch_time: int | None = None,
    ) -> BatchDone:
        """Log, run and commit the batch after `standing`.

        Args:
            standing: Where the pipeline stands.
            ranges: What the batch reads; empty for a tick.
            read_to_end: The partitions that these ranges read to their end.
            records: Exactly these records, where Spark has them already.
            bounded_end: Whether the inputs end here.
            batch_time: Epoch milliseconds, where the clock does not decide.
        """
        start = time.perf_counter()
        record = self.begin(standing, ranges, read_to_end, bounded_end, batch_time)
        return self._finish(standing, record, self._shipment, records, start)

    def replay(
        self,
        standing: Position,
        record: BatchRecord,
        plan: Flow,
        records: Records | None = None,
    ) -> BatchDone:
        """Run a batch again that was logged and not committed, with the plan of that time."""
        settings = replace(self._shipment.settings, plan=plan)
        if settings.sink is not None:
            tries = self.epoch - record.epoch
            sink = settings.sink.again(tries=tries, same_rows=records is None)
            settings = replace(settings, sink=sink)
        shipment = Shipment.of(settings)
        return self._finish(standing, record, shipment, records, time.perf_counter())

    def is_held(self, record: BatchRecord) -> bool:
        """Tell whether any sink has something of a batch, or of a later one."""
        return any(sink.delivered(record.number) for sink in self.sinks)

    def records_of(self, ranges: Ranges) -> Records:
        """Return the records of ranges, which may be empty."""
        if not size_of(ranges):
            return self._nothing
        return self.source.read(ranges)

    def begin(
        self,
        standing: Position,
        ranges: Ranges,
        read_to_end: tuple[tuple[str, int], ...],
        bounded_end: bool = False,
        batch_time: int | None = None,
    ) -> BatchRecord:
        """Log a batch; from here on it will be run, by this run or a later one."""
        now = self.clock() if batch_time is None else batch_time
        self._pass("before_batch", standing.batch + 1)
        record = BatchRecord(
            number=standing.batch + 1,
            epoch=self.epoch,
            plan=self.fingerprint,
            batch_time=max(standing.batch_time, now),
            watermark=standing.watermark.values,
            ranges=ranges,
            read_to_end=read_to_end,
            bounded_end=bounded_end,
            topic_ids=standing.topic_ids,
            found=self.source.found(ranges) if self.kept is not None else {},
        )
        if self.kept is not None:  # first, so that no log has a batch that the topic lacks
            self.kept.put(record)
        record = self.log.begin(record)
        self._pass("batch_logged", record.number)
        return record

    def execute(
        self,
        standing: Position,
        record: BatchRecord,
        records: Records | None = None,
        shipment: Shipment | None = None,
    ) -> Executed:
        """Run the tasks of a batch that is logged; nothing is committed."""
        shipment = shipment or self._shipment
        if (size := size_of(record.ranges)) and records is None:
            records = self.source.read(record.ranges)
        context = BatchContext(
            batch=record.number,
            batch_time=record.batch_time,
            watermarks=record.watermark,
            epoch=self.epoch,
            due=due_chains(clocks_at(record.watermark, record.batch_time), standing.next_due),
            mark=batch_mark(record),
            begins=beginnings(self.log, record.number, shipment.settings.plan, record.plan),
            states=standing.states,
            more=not all(read_to_end(record).values()),
        )
        frame = records if size and records is not None else self._nothing
        few, width = ALL_TASKS if context.begins else self._small, self._tasks()
        try:
            return execute_batch(frame, context, shipment, size, width, few, self._resident)
        except Exception as error:
            raise to_error(error, f"running batch {record.number}") from error

    def finish(
        self, standing: Position, record: BatchRecord, records: Records | None = None
    ) -> BatchDone:
        """Run the tasks of a batch that is logged, and commit it."""
        return self._finish(standing, record, self._shipment, records, time.perf_counter())

    def _finish(
        self,
        standing: Position,
        record: BatchRecord,
        shipment: Shipment,
        records: Records | None,
        start: float,
    ) -> BatchDone:
        logged = time.perf_counter()
        if self._claims is not None:
            self._claims.begin()
        executed = self.execute(standing, record, records, shipment)
        ran = time.perf_counter()
        sink, plan = shipment.settings.sink, shipment.settings.plan
        finished = FinishedBatch(
            number=record.number,
            mark=batch_mark(record),
            notes=executed.report.notes,
            same_rows=sink is None or sink.same_rows,
        )
        for each in self._committed_by("task"):
            each.commit(finished)
        if self.kept is not None:
            self.kept.ran(record.number, executed.report)
        if self._claims is not None:
            self._claims.claim(record, executed.report)
        for each in self._committed_by("driver"):
            self._pass("before_table", record.number)
            each.commit(finished)
            self._pass("table_taken", record.number)
        after = self._commit(standing, record, plan, executed.report)
        done = time.perf_counter()
        spent = {"log": logged - start, "execute": ran - logged, "commit": done - ran}
        return BatchDone(
            watermarks=record.watermark,
            standing=after,
            report=executed.report,
            size=size_of(record.ranges),
            seconds=done - start,
            phases={**{k: v * 1000 for k, v in spent.items()}, **task_phases(executed.report)},
            executed=executed,
            holder=holder(after.watermark, clocks(plan), after.batch_time, read_to_end(record)),
        )

    def _committed_by(self, whom: Literal["task", "driver"]) -> Iterator[Sink]:
        return (sink for sink in self.sinks if sink.capabilities.commit == whom)

    def _commit(
        self, standing: Position, record: BatchRecord, plan: Flow, report: BatchReport
    ) -> Position:
        watermark = advance(
            standing.watermark, clocks(plan), report, record.batch_time, read_to_end(record)
        )
        if record.bounded_end:
            watermark = ended(watermark, watermark.marks)
        after = Position(
            batch=record.number,
            batch_time=record.batch_time,
            offsets=merged(standing.offsets, ends_of(record.ranges)),
            topic_ids={**standing.topic_ids, **record.topic_ids},
            watermark=watermark,
            next_due=next_due(standing, record, report, watermark.marks),
            counters=counted(standing.counters, report),
            states=states_after(standing.states, report),
        )
        self._pass("before_commit_log", record.number)
        if self.log.load_batch(record.number).ranges != record.ranges:
            raise StateError(
                f"another run has cut batch {record.number} again",
                hint="one run at a time may write this state; stop the other one",
            )
        self.log.commit(
            CommitRecord(
                number=record.number,
                epoch=self.epoch,
                changes=dict(changes_of(report)),
                watermark=watermark.to_json(),
                next_due=dict(after.next_due),
                counters=dict(after.counters),
                states=after.states,
            )
        )
        self._pass("commit_logged", record.number)
        return after

    def _pass(self, point: CrashPoint, batch: int) -> None:
        crash_point(point, batch, self._shipment.settings.driver)


def read_to_end(record: BatchRecord) -> dict[tuple[str, int], bool]:
    """Return every source partition of a batch, and whether it was read to its end."""
    places = frozenset(record.read_to_end)
    return {(t, p): (t, p) in places for t, ps in record.ranges.items() for p in ps}
