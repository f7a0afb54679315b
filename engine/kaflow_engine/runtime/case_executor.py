"""Runs case files on Spark: the batches of production without a broker."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.duck.functions.catalogue import modules_in_use
from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.config import SparkConfig
from kaflow_engine.operators.watermark import ended
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.runner import BatchRunner
from kaflow_engine.runtime.batch.task_metrics import changes_of
from kaflow_engine.runtime.jobs.executor import SMALL, Executed, Shipment
from kaflow_engine.runtime.jobs.records import records_of_table
from kaflow_engine.runtime.planning.plan_codec import fingerprint
from kaflow_engine.runtime.source.record_source import RecordSource
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_session
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.state.log.batch_log import BatchLog, Ranges, StateRecord
from kaflow_engine.state.storage.store import LocalStore

_TASKS = 2


@dataclass(frozen=True, slots=True)
class CaseBatch:
    """What one batch did."""

    output: pa.Table
    """Schema OUTPUT."""
    counters: Mapping[str, int]


class CaseSession:
    """One pipeline with a state of its own, fed batch by batch."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Flow,
        partitions: Mapping[str, Iterable[int]],
        replay: bool,
        schemas: Mapping[int, str],
        spread: bool,
    ) -> None:
        self._spark, self._plan, self._replay = spark, plan, replay
        self._width = _TASKS if spread else 1
        self._scratch = TemporaryDirectory(prefix="kaflow-case-")
        self._start = {topic: dict.fromkeys(some, 0) for topic, some in partitions.items()}
        self._standing = Position(batch=0, batch_time=0, offsets=self._start)
        self._runner = _runner(spark, plan, Path(self._scratch.name), schemas, spread)

    def run(self, records: pa.Table, batch_time: int) -> CaseBatch:
        """Run one batch."""
        standing, runner = self._standing, self._runner
        frame = records_of_table(self._spark, records, self._width)
        ranges = _ranges(records, self._start)
        everywhere = tuple((t, p) for t, ps in ranges.items() for p in ps)
        record = runner.begin(standing, ranges, everywhere, batch_time=batch_time)
        first = runner.execute(standing, record, frame) if self._replay else None
        done = runner.finish(standing, record, frame)
        if first is not None and _contents(first) != _contents(done.executed):
            raise StateError(f"batch {record.number} gave other rows when it was replayed")
        self._standing = done.standing
        return CaseBatch(done.executed.output, done.report.counters)

    def end(self, batch_time: int) -> CaseBatch:
        """Run the empty batch that ends a bounded run."""
        endless = ended(self._standing.watermark, clocks(self._plan))
        self._standing = replace(self._standing, watermark=endless)
        return self.run(RECORDS.empty_table(), batch_time)

    def close(self) -> None:
        """Remove the state."""
        self._scratch.cleanup()


class SparkExecutor:
    """Runs cases on the session of this process; without one, the first case starts it."""

    def __init__(self, spark: SparkSession | None = None, spread: bool = False) -> None:
        self._given = spark
        self._own: SparkSession | None = None
        self._spread = spread

    @property
    def keeps_order(self) -> bool:
        """One task puts all rows in order, several only those of a key."""
        return not self._spread

    def start(
        self,
        planned: PlannedPipeline,
        partitions: Mapping[str, Iterable[int]],
        replay: bool,
        schemas: Mapping[int, str],
    ) -> CaseSession:
        """Begin with an empty state."""
        spark = self._given or self._own or SparkSession.getActiveSession()
        if spark is None:
            spark = self._own = start_session(SparkConfig(), find_java(), ())
        return CaseSession(spark, planned.plan, partitions, replay, schemas, self._spread)

    def close(self) -> None:
        """Stop the session that this executor started."""
        if self._own is not None:
            self._own.stop()
            self._own = None


def _runner(
    spark: SparkSession, plan: Flow, directory: Path, schemas: Mapping[int, str], spread: bool
) -> BatchRunner:
    log = BatchLog(LocalStore(directory))
    state = StateRecord(
        state_id="case",
        generation=1,
        partitions=plan.partitions,
        created_ms=0,
        start={},
        dimension_ends={},
        schemas={},
        fingerprint=fingerprint(plan),
    )
    log.create_state(state)
    settings = TaskSettings(
        plan=plan,
        directory=directory,
        state=state.ref,
        epoch=1,
        snapshots=log.store,
        sink=None,
        driver=os.getpid(),
        schemas=dict(schemas),
        functions=modules_in_use(),
    )
    return BatchRunner(
        RecordSource(spark=spark, topics=InputTopics({}), pipeline=plan.pipeline),
        log,
        fingerprint(plan),
        Shipment.of(settings),
        lambda: _TASKS,
        small=-1 if spread else SMALL,
    )


def _ranges(records: pa.Table, start: Mapping[str, Mapping[int, int]]) -> Ranges:
    """Return the ranges of a batch; those without a record are empty."""
    found: Ranges = {topic: dict.fromkeys(some, (0, 0)) for topic, some in start.items()}
    grouped = records.group_by(["topic", "partition"]).aggregate(
        [("offset", "min"), ("offset", "max")]
    )
    for row in grouped.to_pylist():
        found.setdefault(row["topic"], {})[row["partition"]] = (
            row["offset_min"],
            row["offset_max"] + 1,
        )
    return found


def _contents(executed: Executed) -> tuple[Any, ...]:
    rows = sorted(map(repr, executed.output.to_pylist()))
    report = executed.report
    return rows, report.counters, report.partitions, report.next_due, changes_of(report)
