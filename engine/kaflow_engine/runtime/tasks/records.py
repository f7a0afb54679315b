"""Records on their way into tasks: a frame of Spark's, or ranges that the tasks read themselves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kaflow_engine.connectors.kafka.native.reads import together
from kaflow_engine.connectors.sources.contract import RangeRead
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.failures.failures import carried

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]
"""What Spark's `mapInArrow` calls."""


@dataclass(frozen=True, slots=True)
class InTasks:
    """Ranges that tasks read themselves: no record passes Spark's JVM on its way in."""

    spark: SparkSession
    reads: tuple[RangeRead, ...]

    def frame(self) -> DataFrame:
        """Return a frame of the records (columns of RECORDS), each range in a partition."""
        frame, task = in_several(self, partial(_as_read, SECRET))
        return frame.mapInArrow(task, from_arrow_schema(RECORDS))


Records = DataFrame | InTasks


def in_one(records: Records, task: Task) -> tuple[DataFrame, Task]:
    """Return a frame of one partition, and what does a task over records there."""
    if isinstance(records, DataFrame):
        return records.coalesce(1), task
    return _reading(records.spark, [together(records.reads)], task)


def in_several(records: Records, task: Task) -> tuple[DataFrame, Task]:
    """Return a frame with a partition for each source partition, and what does a task there."""
    if isinstance(records, DataFrame):
        return records, task
    return _reading(records.spark, [[read] for read in records.reads], task)


def _reading(
    spark: SparkSession, reads: Sequence[Sequence[RangeRead]], task: Task
) -> tuple[DataFrame, Task]:
    count = len(reads)
    return spark.range(0, count, 1, count), partial(_read_first, reads, task)


def _read_first(reads: Sequence[Sequence[RangeRead]], task: Task, numbers: Batches) -> Batches:
    return task(_read(reads, numbers))


def _read(reads: Sequence[Sequence[RangeRead]], numbers: Batches) -> Batches:
    for batch in numbers:
        asked: list[int] = batch.column(0).to_pylist()
        for number in asked:
            for read in reads[number]:
                yield from read()


def _as_read(secret: str, records: Batches) -> Batches:
    """Give records as they are; what goes wrong reaches the driver whole."""
    try:
        yield from records
    except Exception as error:
        raise carried(error, secret) from None
