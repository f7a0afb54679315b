"""Spark's Kafka source: the endless stream of a pipeline, and exact ranges of it."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters.input_topics import OfCluster
from kaflow_engine.runtime.source.offsets import spark_offsets, spark_partitions
from kaflow_engine.state.log.batch_log import Offsets, Ranges

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
    "kafkaConsumer.pollTimeoutMs": "30000",
    "fetchOffset.retryIntervalMs": "200",
    "failOnDataLoss": "true",
}


_FETCHED = 32 << 20
"""Bytes that the consumers of a pipeline may hold, compressed; each partition has its own, which
Spark keeps for the next batch."""
_POLLED = 80_000
"""Records that they may hold."""


def fetch_options(pipeline: str, partitions: int) -> dict[str, str]:
    """Return the group of the consumers of so many partitions, and how much each fetches at once.

    All reads of a pipeline share their consumers: Spark keeps them by group, with what they have
    fetched, and would keep those of every bounded read. Within a group all settings must be equal.
    They commit nothing and join no group.

    >>> fetch_options("p", 3)["kafka.max.partition.fetch.bytes"]
    '8388608'
    >>> fetch_options("p", 100)["kafka.group.id"]
    'kaflow-spark-p-128'
    """
    share = 4
    while share < min(partitions, 128):
        share *= 2
    return {
        "kafka.group.id": f"kaflow-spark-{pipeline}-{share}",
        "kafka.max.partition.fetch.bytes": str(max(_FETCHED // share, 1 << 20)),
        "kafka.max.poll.records": str(_POLLED // share),
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
        pipeline: Name for the group of its consumers.
        start: The next offset of every partition of every topic.
        most: Offsets of one micro-batch.
    """
    options = {
        **_options(kafka, pipeline, start),
        "subscribe": ",".join(sorted(start)),
        "startingOffsets": spark_offsets(start),
        "maxOffsetsPerTrigger": str(most),
    }
    return _records(spark.readStream.format("kafka").options(**options).load())


def range_frame(spark: SparkSession, topics: OfCluster, pipeline: str, ranges: Ranges) -> DataFrame:
    """Return the records (columns of RECORDS) of exactly these ranges; one must not be empty.

    Args:
        spark: The session.
        topics: Of one cluster; their records are of what the pipeline calls them.
        pipeline: Name for the group of its consumers.
        ranges: By topic.
    """
    wanted = _filled(ranges)
    options = {
        **_options(topics.kafka, pipeline, wanted),
        "assign": spark_partitions(wanted),
        "startingOffsets": spark_offsets(
            {t: {p: r[0] for p, r in ps.items()} for t, ps in wanted.items()}
        ),
        "endingOffsets": spark_offsets(
            {t: {p: r[1] for p, r in ps.items()} for t, ps in wanted.items()}
        ),
    }
    found = _records(spark.read.format("kafka").options(**options).load())
    if not topics.are_renamed:
        return found
    called = ", ".join(f"'{topic}', '{name}'" for topic, name in topics.names.items())
    return found.withColumn("topic", F.expr(f"element_at(map({called}), topic)"))


def _options(
    kafka: KafkaSettings, pipeline: str, topics: Mapping[str, Mapping[int, object]]
) -> dict[str, str]:
    own = {
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        # Spark knows kept consumers by group and topic, not by brokers
        **fetch_options(
            f"{pipeline}.{kafka.cluster}" if kafka.cluster else pipeline,
            sum(len(partitions) for partitions in topics.values()),
        ),
    }
    return {**OPTIONS, **kafka.spark(), **own}


def _records(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(*COLUMNS)


def _filled(ranges: Ranges) -> Ranges:
    found = {t: {p: r for p, r in ps.items() if r[1] > r[0]} for t, ps in ranges.items()}
    return {topic: ps for topic, ps in found.items() if ps}
