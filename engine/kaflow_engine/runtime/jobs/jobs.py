"""Jobs of Spark: tasks over records, exchanges between them, and what the last ones return.

Tasks take bytes and give pairs of a number and bytes: that of the task the bytes are for or, from
the last ones, what they are. Ranges that tasks read themselves need nothing of Spark SQL, which
takes longer to plan a query than a small batch takes to run.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import RDD, SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from kaflow_engine.connectors.sources.contract import RangeRead
from kaflow_engine.runtime.jobs.carriers import Carrier, carrier_of
from kaflow_engine.runtime.tasks.level_task import Batches, Data, Given

First = Callable[[Batches], Iterator[Given]]
"""A task over records, or over what passes Spark."""
Next = Callable[[Iterator[Data]], Iterator[Given]]
"""A task over what other tasks have given it."""

GIVEN = pa.schema([pa.field("number", pa.int32()), pa.field("data", pa.binary())])
"""What tasks give, in a frame."""


class Job(Protocol):
    """A job that has not begun."""

    def exchanged(self, width: int, task: Next) -> "Job":
        """Return one in which `width` further tasks take what those before give them."""
        ...

    def collect(self) -> list[Given]:
        """Run it, and return what the last tasks give."""
        ...


@dataclass(frozen=True, slots=True)
class RangeJob:
    """A job whose first tasks read their ranges themselves."""

    given: "RDD[Given]"
    carrier: Carrier | None = None

    @staticmethod
    def over(spark: SparkContext, reads: Sequence[Sequence[RangeRead]], task: First) -> "RangeJob":
        """Return a job with a task for each list of ranges."""
        given = numbers(spark, len(reads)).mapPartitionsWithIndex(
            partial(_over_ranges, reads, task)
        )
        return RangeJob(given)

    def exchanged(self, width: int, task: Next) -> "RangeJob":
        """See `Job`."""
        carrier = self.carrier or carrier_of(self.given.context)
        sent = self.given.mapPartitions(carrier.send).partitionBy(width, _as_it_is)
        return RangeJob(sent.mapPartitions(partial(_over_streams, carrier, task)), carrier)

    def collect(self) -> list[Given]:
        """See `Job`."""
        try:
            return self.given.collect()
        finally:
            self.given.cleanShuffleDependencies()  # else they stay until the JVM collects garbage
            if self.carrier is not None:
                self.carrier.end()


@dataclass(frozen=True, slots=True)
class FrameJob:
    """A job whose first tasks take the records of a frame."""

    taken: DataFrame
    task: First
    carrier: Carrier | None = None

    @staticmethod
    def over(records: DataFrame, task: First) -> "FrameJob":
        """Return a job with a task for each partition of a frame."""
        return FrameJob(records, task)

    def exchanged(self, width: int, task: Next) -> "FrameJob":
        """See `Job`."""
        carrier = self.carrier or carrier_of(self.taken.sparkSession.sparkContext)
        given = _given(self.taken, partial(_sent, carrier, self.task))
        sent = given.repartitionById(width, sf.col("number"))
        return FrameJob(sent, partial(_over_rows, carrier, task), carrier)

    def collect(self) -> list[Given]:
        """See `Job`."""
        try:
            rows = _given(self.taken, self.task).collect()
        finally:
            if self.carrier is not None:
                self.carrier.end()
        return [(row["number"], bytes(row["data"])) for row in rows]


_KNOWN: "WeakKeyDictionary[SparkContext, dict[int, RDD[int]]]" = WeakKeyDictionary()


def numbers(spark: SparkContext, count: int) -> "RDD[int]":
    """Return so many partitions of nothing but their number, made once."""
    known = _KNOWN.setdefault(spark, {})
    if count not in known:
        known[count] = spark.parallelize(range(count), count)
    return known[count]


def _as_it_is(number: int) -> int:
    return number


def _over_ranges(
    reads: Sequence[Sequence[RangeRead]], task: First, number: int, _numbers: Iterable[int]
) -> Iterator[Given]:
    return over_ranges(reads[number], task)


def over_ranges(reads: Sequence[RangeRead], task: First) -> Iterator[Given]:
    """Run a task over the records of ranges."""
    return task(chain.from_iterable(read() for read in reads))


def _over_streams(carrier: Carrier, task: Next, given: Iterable[Given]) -> Iterator[Given]:
    return task(carrier.receive(given))


def _given(taken: DataFrame, task: First) -> DataFrame:
    return taken.mapInArrow(partial(_in_batches, task), from_arrow_schema(GIVEN))


def _sent(carrier: Carrier, task: First, batches: Batches) -> Iterator[Given]:
    return carrier.send(task(batches))


def _over_rows(carrier: Carrier, task: Next, batches: Batches) -> Iterator[Given]:
    return task(carrier.receive(_pairs(batches)))


def _pairs(batches: Batches) -> Iterator[Given]:
    for batch in batches:
        for row in batch.to_pylist():
            yield row["number"], row["data"]


def _in_batches(task: First, batches: Batches) -> Batches:
    for number, data in task(batches):
        columns: list[Any] = [pa.array([number], pa.int32()), pa.array([data], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, schema=GIVEN)
