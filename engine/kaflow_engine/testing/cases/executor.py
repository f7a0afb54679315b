"""What runs the batches of a case; the local executor is the first of its kind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

import pyarrow as pa

from kaflow_engine.errors import UnknownName
from kaflow_engine.formats.schema_registry import UnknownSchema
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.testing.local.executor import LocalPipeline, SchemaOf

EXECUTORS: dict[str, str] = {
    "local": "kaflow_engine.testing.cases.executor:LocalExecutor",
    "spark": "kaflow_engine.runtime.case_executor:SparkExecutor",
}


class BatchOutcome(Protocol):
    """What one batch did."""

    @property
    def output(self) -> pa.Table:
        """Schema OUTPUT: rows and dead letters, those of one key in order."""
        ...

    @property
    def counters(self) -> Mapping[str, int]:
        """How the counters changed."""
        ...


class Session(Protocol):
    """One pipeline that is fed batch by batch."""

    def run(self, records: pa.Table, batch_time: int) -> BatchOutcome:
        """Run one batch.

        Args:
            records: Schema RECORDS, each partition in offset order; may be empty.
            batch_time: Epoch milliseconds, never less than the one before.
        """
        ...

    def end(self, batch_time: int) -> BatchOutcome:
        """Run the empty batch that ends a bounded run: its watermark is infinite."""
        ...

    def close(self) -> None:
        """Give back what the session holds; called once, also after an error."""
        ...


class Executor(Protocol):
    """Starts sessions; one executor serves many cases."""

    @property
    def keeps_order(self) -> bool:
        """Whether rows of different keys leave in the one order of the records too."""
        ...

    def start(
        self,
        planned: PlannedPipeline,
        partitions: Mapping[str, Iterable[int]],
        replay: bool,
        schemas: Mapping[int, str],
    ) -> Session:
        """Begin with an empty state.

        Args:
            planned: What runs; its Avro output has an id already.
            partitions: The partitions of every input topic; every batch reads each to its end.
            replay: Run every batch twice, and raise StateError where the results differ.
            schemas: Avro schemas by the ids that the records and the plan use; there is no
                registry.
        """
        ...

    def close(self) -> None:
        """Give back what the executor holds."""
        ...


@dataclass(frozen=True, slots=True)
class LocalSession:
    """A pipeline in this process."""

    pipeline: LocalPipeline

    def run(self, records: pa.Table, batch_time: int) -> BatchOutcome:
        """Run one batch."""
        return self.pipeline.run(records, batch_time)

    def end(self, batch_time: int) -> BatchOutcome:
        """Run the batch that ends a bounded run."""
        return self.pipeline.end(batch_time)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs cases in this process, in milliseconds."""

    spread: bool = False
    """Run the levels as separate tasks, one for each partition, as a cluster would."""

    @property
    def keeps_order(self) -> bool:
        """One task puts all rows in order, several only those of a key."""
        return not self.spread

    def start(
        self,
        planned: PlannedPipeline,
        partitions: Mapping[str, Iterable[int]],
        replay: bool,
        schemas: Mapping[int, str],
    ) -> LocalSession:
        """Begin with an empty state."""
        pipeline = LocalPipeline(
            planned.plan,
            partitions,
            spread=self.spread,
            replay=replay,
            schema_by_id=_by_id(schemas),
        )
        return LocalSession(pipeline)

    def close(self) -> None:
        """Nothing is held."""


def executor_called(name: str) -> Executor:
    """Return the executor called `name`, importing it on first use.

    Raises:
        UnknownName: There is none.
    """
    if name not in EXECUTORS:
        raise UnknownName("executor", name, EXECUTORS)
    module, _, attribute = EXECUTORS[name].partition(":")
    found: Executor = getattr(import_module(module), attribute)()
    return found


def _by_id(schemas: Mapping[int, str]) -> SchemaOf:
    def look_up(schema_id: int, cluster: str) -> str:
        if schema_id not in schemas:
            raise UnknownSchema(schema_id)
        return schemas[schema_id]

    return look_up
