"""The raw floor: Spark reads a topic as the product does, and throws the records away."""

import json
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bench.measure.rates import Batch
from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.source.kafka import stream_frame
from kaflow_engine.runtime.spark.jars import spark_kafka_jars
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_session


def read_and_discard(brokers: str, topic: str, batch: int, master: str) -> list[Batch]:
    """Read a topic to its end with the product's session and source options."""
    kafka = KafkaSettings.of(brokers.split(","))
    partitions = describe(kafka, [topic])[topic].partitions
    conf = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    spark = start_session(SparkConfig(master=master, conf=conf), find_java(), spark_kafka_jars())
    try:
        start = {topic: dict.fromkeys(range(partitions), 0)}
        frame = stream_frame(spark, kafka, "floor", start, batch)
        with tempfile.TemporaryDirectory(prefix="kaflow-floor-") as checkpoint:
            writer = frame.writeStream.format("noop").trigger(availableNow=True)
            query = writer.option("checkpointLocation", checkpoint).start()
            query.awaitTermination()
            reports = [json.loads(progress.json) for progress in query.recentProgress]
            return [_batch(each) for each in reports if each["numInputRows"]]
    finally:
        spark.stop()


def _batch(progress: Mapping[str, Any]) -> Batch:
    began = datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000
    spent = progress["durationMs"]["triggerExecution"]
    return Batch(end=began + spent, records=progress["numInputRows"], spent=spent)


def main() -> None:
    """Print the batches as JSON: brokers, topic, records a batch, master."""
    brokers, topic, batch, master = sys.argv[1:]
    found = read_and_discard(brokers, topic, int(batch), master)
    print(json.dumps([[b.end, b.records, b.spent] for b in found]))  # noqa: T201  # its answer


if __name__ == "__main__":
    main()
