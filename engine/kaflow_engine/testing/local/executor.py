"""Local executor: a plan in one process, without Spark or a broker, in milliseconds."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.flow.flow import Beginning, Flow
from kaflow_engine.flow.graph import last_level
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.measures import Measures
from kaflow_engine.operators.levels import run_level, run_levels
from kaflow_engine.operators.rows.reports import BatchReport, read_reports
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.operators.watermark import END, Place, WatermarkState, advance, ended
from kaflow_engine.plugins.state import Learned
from kaflow_engine.state.answers import Answers
from kaflow_engine.state.copies.memory import MemoryState
from kaflow_engine.testing.local.world import Crashed, LocalWorld, LoggedBatch, Point


def never(when: str, step: str) -> None:
    """Let every batch run to its end."""


SchemaOf = Callable[[int, str], str]
"""Returns the schema registered under an id, with the registry of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBatch:
    """What one batch did."""

    number: int
    batch_time: int
    output: pa.Table
    """Schema OUTPUT: rows and dead letters, those of one key in order."""
    counters: Mapping[str, int]
    """How the counters changed."""
    watermarks: Mapping[int, int]
    """The watermarks of the next batch, by chain; absent before its first record."""


class _LocalTask:
    """One task over what is durable."""

    def __init__(
        self, world: LocalWorld, partitions: Sequence[int], schema_by_id: SchemaOf
    ) -> None:
        self.partitions = partitions
        self._world = world
        self._schema_by_id = schema_by_id
        self.measures = Measures()

    def state(self, step: int, partition: int) -> MemoryState:
        return self._world.state((step, partition))

    def write_changes(self, step: int, partition: int, changes: pa.Table) -> None:
        self._world.write_changes((step, partition), changes)

    def deliver(self, rows: pa.Table) -> None:
        self._world.deliver(rows)

    def connection(self, kind: str, name: str) -> Mapping[str, str]:
        return self._world.connections.get((kind, name), {})

    @property
    def secrets(self) -> Mapping[str, str]:
        return self._world.connections.get(("secrets", ""), {})

    @property
    def answers(self) -> Answers:
        return self._world.answers

    @property
    def learned(self) -> Learned:
        return self._world.learned

    def avro_schema(self, schema_id: int, cluster: str = "") -> str:
        return self._schema_by_id(schema_id, cluster)


class LocalPipeline:
    """A pipeline that is fed batch by batch.

    Args:
        plan: What runs.
        partitions: The partitions of every input topic.
        spread: Run the levels as separate tasks, one for each partition, as a cluster would.
        replay: Run every batch twice and compare.
        schema_by_id: Writer schemas of Avro inputs, by id and cluster.
        point: Called at every step of the protocol; where it raises Crashed, the run ends and the
            next one recovers.
        connections: How databases are reached, by their kind and the name of the connection.
    """

    def __init__(
        self,
        plan: Flow,
        partitions: Mapping[str, Iterable[int]],
        *,
        spread: bool = False,
        replay: bool = False,
        schema_by_id: SchemaOf | None = None,
        point: Point = never,
        connections: Mapping[tuple[str, str], Mapping[str, str]] | None = None,
    ) -> None:
        self._plan = plan
        self._places = [(topic, part) for topic, some in partitions.items() for part in some]
        self._spread, self._replay = spread, replay
        self._schema_by_id = schema_by_id or _no_registry
        self._world = LocalWorld(point)
        self._world.connections.update(connections or {})
        self._epoch = 1
        self._at_end = False

    @property
    def counters(self) -> Counter[str]:
        """Totals so far."""
        total: Counter[str] = Counter()
        for commit in self._world.commits:
            total.update(commit.counters)
        return total

    def go_on(self, plan: Flow) -> None:
        """Take another plan from the next batch on; one that is open is run with its own."""
        self._plan = plan

    def run(self, records: pa.Table, batch_time: int, behind: Collection[Place] = ()) -> LocalBatch:
        """Run one batch, to the end of its commit.

        Args:
            records: Schema RECORDS, each partition in offset order; may be empty.
            batch_time: Epoch milliseconds, never less than the one before.
            behind: The partitions that have more records than were read.
        """
        number = len(self._world.commits) + 1
        standing = self._standing()
        if self._at_end:
            standing = ended(standing, clocks(self._plan))
        batch = LoggedBatch(
            number=number,
            plan=self._plan,
            batch_time=batch_time,
            watermarks=standing.values,
            records=records,
            behind=frozenset(behind),
        )
        while len(self._world.commits) < number:
            try:
                if self._world.begun is None:
                    self._world.begin(batch)
                self._finish()
            except Crashed as crash:
                self._epoch += 1
                if crash.copies_lost:
                    self._world.lose_copies()
        return LocalBatch(
            number=number,
            batch_time=batch_time,
            output=self._world.delivered(),
            counters=self._world.commits[-1].counters,
            watermarks=self._standing().values,
        )

    def end(self, batch_time: int) -> LocalBatch:
        """End a bounded run: the watermark goes to infinity, and what waits is decided."""
        self._at_end = True
        return self.run(RECORDS.empty_table(), batch_time)

    def _standing(self) -> WatermarkState:
        commits = self._world.commits
        return commits[-1].watermark if commits else WatermarkState()

    def _finish(self) -> None:
        """Run and commit the batch that is logged, with nothing but what the log says."""
        logged = self._world.begun
        assert logged is not None
        batch = BatchContext(
            batch=logged.number,
            batch_time=logged.batch_time,
            watermarks=logged.watermarks,
            epoch=self._epoch,
            begins=self._begins(logged.plan),
            states=self._world.states,
        )
        report = self._once(logged.plan, batch, logged.records)
        if self._replay and report != self._once(logged.plan, batch, logged.records):
            raise StateError(f"batch {batch.batch} gave another report when it was replayed")
        read_to_end = {place: place not in logged.behind for place in self._places}
        watermark = advance(
            self._standing(), clocks(logged.plan), report, logged.batch_time, read_to_end
        )
        if END in logged.watermarks.values():
            watermark = ended(watermark, watermark.marks)
        self._world.commit(watermark, report.counters)

    def _begins(self, plan: Flow) -> frozenset[Beginning]:
        """Return what begins with the batch that is logged: what the one before did not have."""
        commits = self._world.commits
        return frozenset(plan.begins) - frozenset(
            commits[-1].plan.begins if commits else plan.begins
        )

    def _once(self, plan: Flow, batch: BatchContext, records: pa.Table) -> BatchReport:
        everything = range(plan.partitions)
        task = _LocalTask(self._world, everything, self._schema_by_id)
        if not self._spread:
            return read_reports(run_levels(plan, batch, records, task))
        rows = records
        for level in range(last_level(plan) + 1):
            pieces = _by_source(rows) if level == 0 else _by_part(rows, everything)
            found: list[pa.Table] = []
            for part, piece in pieces:
                task.partitions = [part]
                found.append(run_level(plan, level, batch, piece, task))
            rows = pa.concat_tables([EXCHANGE.empty_table(), *found])
        return read_reports(rows)


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


def _no_registry(schema_id: int, cluster: str) -> str:
    raise StateError(f"no schema registry: schema {schema_id} is not known")
