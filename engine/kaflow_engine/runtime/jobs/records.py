"""Records on their way into tasks: a frame of Spark's, or ranges that the tasks read themselves."""

from collections.abc import Iterator, Sequence
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
from kaflow_engine.runtime.jobs.jobs import First, FrameJob, Job, RangeJob, over_ranges
from kaflow_engine.runtime.jobs.resident import Asked
from kaflow_engine.runtime.tasks.level_task import Batches


@dataclass(frozen=True, slots=True)
class InTasks:
    """Ranges that tasks read themselves: no record passes Spark's JVM on its way in."""

    spark: SparkSession
    reads: tuple[RangeRead, ...]

    def frame(self) -> DataFrame:
        """Return a frame of the records (columns of RECORDS), each range in a partition."""
        count = len(self.reads)
        read = partial(_read, SECRET, self.reads)
        return self.spark.range(0, count, 1, count).mapInArrow(read, from_arrow_schema(RECORDS))


Records = DataFrame | InTasks


def no_records(spark: SparkSession) -> InTasks:
    """Return no range at all; one task runs all the same."""
    return InTasks(spark, ())


def records_of_table(spark: SparkSession, table: pa.Table, width: int = 1) -> Records:
    """Return the records of a table (RECORDS): as a range, or in a frame of so many partitions,
    with each source partition in one of them."""
    if width == 1 or not table.num_rows:
        return InTasks(spark, (partial(_batches, table),) if table.num_rows else ())
    # a copy, because pyspark cannot take slices of nullable lists
    whole = table.cast(RECORDS).take(pa.array(range(table.num_rows)))
    return spark.createDataFrame(whole).repartition(width, "topic", "partition")


def in_one(records: Records, task: First) -> Job:
    """Return a job of one task over all records."""
    if isinstance(records, DataFrame):
        return FrameJob.over(records.coalesce(1), task)
    return RangeJob.over(records.spark.sparkContext, [together(records.reads)], task)


def in_resident(records: InTasks, task: First) -> Asked:
    """Return what a resident task does to run a task over all records."""
    return partial(over_ranges, together(records.reads), task)


def in_several(records: Records, task: First, most: int) -> Job:
    """Return a job with a task for each source partition, and for none at all.

    Args:
        records: Of a frame, each partition has a task.
        task: What runs over the records of each.
        most: Tasks over ranges, at most; with fewer, each has several.
    """
    if isinstance(records, DataFrame):
        return FrameJob.over(records, task)
    count = max(min(len(records.reads), most), 1)
    reads = [together(records.reads[number::count]) for number in range(count)]
    return RangeJob.over(records.spark.sparkContext, reads, task)


def _read(secret: str, reads: Sequence[RangeRead], numbers: Batches) -> Batches:
    """Give the records of ranges; what goes wrong reaches the driver whole."""
    try:
        for batch in numbers:
            asked: list[int] = batch.column(0).to_pylist()
            for number in asked:
                yield from reads[number]()
    except Exception as error:
        raise carried(error, secret) from None


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches()
