"""Fills topics, with as many processes as there are cores."""

import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from bench.feed.data import Fill, messages
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import SinkError

_QUEUED = 400_000
_FLUSH_S = 120.0

OPTIONS: dict[str, object] = {
    "compression.type": "lz4",
    "enable.idempotence": True,  # keeps the order of a partition when a batch is sent again
    "linger.ms": 20,
    "batch.num.messages": 20_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 2 * _QUEUED,
    "queue.buffering.max.kbytes": 1_000_000,
}


def load(kafka: KafkaSettings, fills: Sequence[Fill], processes: int | None = None) -> None:
    """Create topics and fill them; every partition in the order of its chunks.

    Raises:
        SinkError: A record was not taken.
    """
    if not fills:
        return
    for fill in fills:
        create_topic(kafka, fill.topic, fill.partitions, {"retention.ms": "-1"})
    workers = min(processes or os.cpu_count() or 1, min(fill.partitions for fill in fills))
    while any(fill.partitions % workers for fill in fills):
        workers -= 1  # each partition must have one sender
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.starmap(send, [(kafka, fills, share, workers) for share in range(workers)])


def send(kafka: KafkaSettings, fills: Sequence[Fill], share: int, of: int) -> None:
    """Send the chunks whose number is `share`, modulo `of`."""
    with sending(kafka) as take:
        for fill in fills:
            for chunk in range(share, fill.chunks, of):
                take(fill.topic, chunk % fill.partitions, messages(fill, chunk))


@contextmanager
def sending(kafka: KafkaSettings) -> Generator[Callable[[str, int, list[Any]], None]]:
    """Give a function that sends messages to a partition of a topic; all are sent when it ends.

    Raises:
        SinkError: A record was not taken.
    """
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    def take(topic: str, partition: int, sent: list[Any]) -> None:
        while len(producer) > _QUEUED and not failed:
            producer.poll(0.05)
        taken = _produced(producer, topic, sent, partition, delivered)
        if taken < len(sent) or failed:
            raise SinkError(f"topic '{topic}' does not take records: {failed[:1]}")

    producer = Producer(kafka.librdkafka(**OPTIONS))
    yield take
    left = producer.flush(_FLUSH_S)
    if failed or left:
        raise SinkError(f"{left or len(failed)} records were not taken: {failed[:1]}")


def _produced(
    producer: Producer,
    topic: str,
    sent: list[Any],
    partition: int,
    delivered: Callable[[KafkaError | None, Message], None],
) -> int:
    """Produce messages, and return how many were taken; a batch has neither headers nor times."""
    if not {"headers", "timestamp"} & {*sent[0]}:
        return producer.produce_batch(topic, sent, partition=partition, on_delivery=delivered)
    for message in sent:
        producer.produce(topic, **message, partition=partition, on_delivery=delivered)
    return len(sent)
