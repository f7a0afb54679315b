"""Spark's Kafka source: the endless stream of a pipeline, and exact ranges of it."""

from pyspark.sql import DataFrame, SparkSession

from kaflow_engine.connectors.kafka_client import KafkaSettings
from kaflow_engine.runtime.offsets import spark_offsets, spark_partitions
from kaflow_engine.state.log import Offsets, Ranges

COLUMNS = (
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp) AS timestamp",
    "key",
    "value",
    "headers",
)

OPTIONS = {
    "kafka.isolation.level": "read_committed",
    # Spark asks for offsets right after a fetch, on the connection on which the next fetch already
    # waits for records: the default of 500 ms is then paid once for each partition of each batch.
    "kafka.fetch.max.wait.ms": "5",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.max.poll.records": "20000",
    "kafkaConsumer.pollTimeoutMs": "30000",
    "fetchOffset.retryIntervalMs": "200",
    "failOnDataLoss": "true",
}


def stream_frame(
    spark: SparkSession,
    kafka: KafkaSettings,
    pipeline: str,
    start: Offsets,
    most: int,
) -> DataFrame:
    """Return the stream of records (columns of RECORDS) behind `start`.

    Args:
        spark: The session.
        kafka: How to reach the brokers.
        pipeline: Name for the consumer group that Spark invents.
        start: The next offset of every partition of every topic.
        most: Offsets of one micro-batch.
    """
    options = {
        **_options(kafka, pipeline),
        "subscribe": ",".join(sorted(start)),
        "startingOffsets": spark_offsets(start),
        "maxOffsetsPerTrigger": str(most),
    }
    return _records(spark.readStream.format("kafka").options(**options).load())


def range_frame(
    spark: SparkSession, kafka: KafkaSettings, pipeline: str, ranges: Ranges
) -> DataFrame:
    """Return the records (columns of RECORDS) of exactly these ranges; one must not be empty."""
    wanted = _filled(ranges)
    options = {
        **_options(kafka, pipeline),
        "assign": spark_partitions(wanted),
        "startingOffsets": spark_offsets(
            {t: {p: r[0] for p, r in ps.items()} for t, ps in wanted.items()}
        ),
        "endingOffsets": spark_offsets(
            {t: {p: r[1] for p, r in ps.items()} for t, ps in wanted.items()}
        ),
    }
    return _records(spark.read.format("kafka").options(**options).load())


def _options(kafka: KafkaSettings, pipeline: str) -> dict[str, str]:
    own = {"includeHeaders": "true", "groupIdPrefix": f"kaflow-spark-{pipeline}"}
    return {**OPTIONS, **kafka.spark(), "kafka.isolation.level": "read_committed", **own}


def _records(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(*COLUMNS)


def _filled(ranges: Ranges) -> Ranges:
    found = {t: {p: r for p, r in ps.items() if r[1] > r[0]} for t, ps in ranges.items()}
    return {topic: ps for topic, ps in found.items() if ps}
