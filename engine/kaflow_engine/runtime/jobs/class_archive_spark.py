"""A short life of Spark, to be archived: run as `python -m` with this module."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.jobs.jobs import RangeJob
from kaflow_engine.runtime.spark.class_archive import recording, spark_archive
from kaflow_engine.runtime.spark.jars import spark_kafka_jars
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_session

_QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Which code is made of classes does not matter to the archive."""
_SCHEMA = "k string, part bigint"
_SECONDS = 120


def main() -> int:
    """Do what pipelines do: jobs of ranges, and of the frames of a stream; tasks and a shuffle."""
    java = find_java()
    with recording(spark_archive(java)):
        session = start_session(SparkConfig(conf=_QUICK), java, spark_kafka_jars())
        _work(session)
        session.stop()
        gateway: Any = SparkContext._gateway  # noqa: SLF001  # pyright: ignore
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_SECONDS)
    return 0


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _given(data: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
    yield from ((0, b"") for _ in data)


def _work(session: SparkSession) -> None:
    def each(frame: DataFrame, batch: int) -> None:
        rows: Any = frame.selectExpr("CAST(value AS STRING) AS k", "pmod(value, 2) AS part")
        rows = rows.mapInArrow(_same, _SCHEMA).repartition(2, "part")
        rows.mapInArrow(_same, _SCHEMA).toArrow()

    RangeJob.over(session.sparkContext, [[], []], _given).exchanged(2, _given).collect()
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    with TemporaryDirectory(prefix="kaflow-archive-") as folder:
        stream = source.writeStream.foreachBatch(each).option("checkpointLocation", folder)
        stream.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    raise SystemExit(main())
