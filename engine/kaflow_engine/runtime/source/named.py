"""Reads ranges of sources that a file names by their kind, in Spark's tasks."""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kaflow_engine.connectors.sources.contract import RangeRead
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.failures.failures import carried


def named_frame(spark: SparkSession, reads: Sequence[RangeRead]) -> DataFrame:
    """Return the records (columns of RECORDS) of ranges, each in a Spark partition of its own."""
    count = len(reads)
    task = partial(read_ranges, SECRET, tuple(reads))
    return spark.range(0, count, 1, count).mapInArrow(task, from_arrow_schema(RECORDS))


def read_ranges(
    secret: str, reads: Sequence[RangeRead], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read the ranges of some numbers; what goes wrong reaches the driver whole."""
    try:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from reads[number]()
    except Exception as error:
        raise carried(error, secret) from None
