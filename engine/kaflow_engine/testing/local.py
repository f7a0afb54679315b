"""The local executor: a plan in one process, without Spark or a broker, in milliseconds."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.errors import StateError
from kaflow_engine.operators.params import Plan
from kaflow_engine.operators.reports import BatchReport, read_reports
from kaflow_engine.operators.schemas import EXCHANGE, OUTPUT, RECORDS
from kaflow_engine.operators.stages import run_stage, run_stages
from kaflow_engine.operators.task import BatchContext
from kaflow_engine.operators.watermark import END, WatermarkState, advance
from kaflow_engine.state.memory import MemoryState

States = dict[tuple[int, int], MemoryState]
"""State partitions by step and partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBatch:
    """What one batch did."""

    number: int
    batch_time: int
    output: pa.Table
    """Schema OUTPUT: rows and dead letters, those of one key in order."""
    counters: Mapping[str, int]
    """How the counters changed."""
    watermark: int | None
    """The watermark of the next batch."""


class _LocalTask:
    """One task over states in memory; changes are kept until the batch is committed."""

    def __init__(
        self, states: States, partitions: Sequence[int], schema_by_id: Callable[[int], str]
    ) -> None:
        self.partitions = partitions
        self.changes: list[tuple[int, int, pa.Table]] = []
        self.output: list[pa.Table] = []
        self._states = states
        self._schema_by_id = schema_by_id

    def state(self, step: int, partition: int) -> MemoryState:
        return self._states[(step, partition)]

    def write_changes(self, step: int, partition: int, changes: pa.Table) -> None:
        self.changes.append((step, partition, changes))

    def deliver(self, rows: pa.Table) -> None:
        self.output.append(rows)

    def avro_schema(self, schema_id: int) -> str:
        return self._schema_by_id(schema_id)


class LocalPipeline:
    """A pipeline that is fed batch by batch.

    Args:
        plan: What runs.
        partitions: The partitions of every input topic.
        spread: Run the stages as separate tasks, one for each partition, as a cluster would.
        replay: Run every batch twice and compare.
        schema_by_id: Writer schemas of Avro inputs.
    """

    def __init__(
        self,
        plan: Plan,
        partitions: Mapping[str, Iterable[int]],
        *,
        spread: bool = False,
        replay: bool = False,
        schema_by_id: Callable[[int], str] | None = None,
    ) -> None:
        self._plan = plan
        self._read_to_end = {(t, p): True for t, some in partitions.items() for p in some}
        self._spread, self._replay = spread, replay
        self._schema_by_id = schema_by_id or _no_registry
        self._states: States = defaultdict(MemoryState)
        self._number = 0
        self._watermark = WatermarkState()
        self.counters: Counter[str] = Counter()

    @property
    def watermark(self) -> int | None:
        """The watermark of the next batch, epoch milliseconds."""
        return self._watermark.value

    def run(self, records: pa.Table, batch_time: int) -> LocalBatch:
        """Run one batch.

        Args:
            records: Schema RECORDS, each partition in offset order; may be empty.
            batch_time: Epoch milliseconds, never less than the one before.
        """
        batch = BatchContext(
            batch=self._number + 1,
            batch_time=batch_time,
            watermark=self._watermark.value,
            epoch=1,
        )
        task, report = self._once(batch, records)
        if self._replay:
            again, report_again = self._once(batch, records)
            if _contents(task) != _contents(again) or report != report_again:
                raise StateError(f"batch {batch.batch} gave other rows when it was replayed")
        for step, partition, changes in task.changes:
            self._states[(step, partition)].apply(changes)
        self._number += 1
        self._watermark = advance(
            self._watermark, self._plan.topics, report, batch_time, self._read_to_end
        )
        self.counters.update(report.counters)
        return LocalBatch(
            number=batch.batch,
            batch_time=batch_time,
            output=pa.concat_tables([OUTPUT.empty_table(), *task.output]),
            counters=report.counters,
            watermark=self._watermark.value,
        )

    def end(self, batch_time: int) -> LocalBatch:
        """End a bounded run: the watermark goes to infinity, and what waits is decided."""
        self._watermark = replace(self._watermark, value=END)
        return self.run(RECORDS.empty_table(), batch_time)

    def _once(self, batch: BatchContext, records: pa.Table) -> tuple[_LocalTask, BatchReport]:
        everything = range(self._plan.partitions)
        if not self._spread:
            task = _LocalTask(self._states, everything, self._schema_by_id)
            return task, read_reports(run_stages(self._plan, batch, records, task))
        task = _LocalTask(self._states, everything, self._schema_by_id)
        rows = records
        for stage in range(self._plan.stage_count):
            pieces = _by_source(rows) if stage == 0 else _by_part(rows, everything)
            found: list[pa.Table] = []
            for part, piece in pieces:
                task.partitions = [part]
                found.append(run_stage(self._plan, stage, batch, piece, task))
            rows = pa.concat_tables([EXCHANGE.empty_table(), *found])
        return task, read_reports(rows)


def _by_source(records: pa.Table) -> list[tuple[int, pa.Table]]:
    places = records.group_by(["topic", "partition"]).aggregate([]).to_pylist()
    return [
        (
            n,
            records.filter(
                pc.and_(
                    pc.equal(records["topic"], place["topic"]),
                    pc.equal(records["partition"], place["partition"]),
                )
            ),
        )
        for n, place in enumerate(places)
    ]


def _by_part(rows: pa.Table, parts: Iterable[int]) -> list[tuple[int, pa.Table]]:
    return [(part, rows.filter(pc.equal(rows["part"], part))) for part in parts]


def _contents(task: _LocalTask) -> tuple[list[object], list[object]]:
    changes = sorted(
        (step, part, sorted(table.to_pylist(), key=lambda row: row["key"]).__repr__())
        for step, part, table in task.changes
    )
    output = [row for table in task.output for row in table.to_pylist()]
    return list(changes), list(output)


def _no_registry(schema_id: int) -> str:
    raise StateError(f"no schema registry: schema {schema_id} is not known")
