"""End-to-end latency: records carry the time at which they were produced, a reader looks at it."""

import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random

from confluent_kafka import OFFSET_END, Consumer, Message, Producer, TopicPartition

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings

_STEP_S = 0.002


def now() -> int:
    """Return epoch milliseconds."""
    return time.time_ns() // 1_000_000


def time_of_click(message: Message) -> int | None:
    """Return when a click was produced, from the row that was made of it."""
    value = message.value()
    return None if value is None else int(json.loads(value)["timestamp"])


class Reader:
    """Reads committed records of a topic as they come, from its end, and keeps their delays.

    Args:
        kafka: How to reach the brokers.
        topic: Its name.
        made: Tells when that was produced of which a record was made; None: it is not measured.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        made: Callable[[Message], int | None] = time_of_click,
    ) -> None:
        self._made = made
        self.delays: list[tuple[int, int]] = []
        """When it arrived, and milliseconds since it was produced."""
        self._ended = threading.Event()
        self._consumer = Consumer(
            kafka.librdkafka(
                **{
                    "group.id": "bench-latency",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "fetch.wait.max.ms": 50,
                    "fetch.queue.backoff.ms": 5,
                }
            )
        )
        count = describe(kafka, [topic])[topic].partitions
        self._consumer.assign([TopicPartition(topic, p, OFFSET_END) for p in range(count)])
        self._thread = threading.Thread(target=self._read, name="bench-reader", daemon=True)

    @contextmanager
    def running(self) -> Generator["Reader"]:
        """Read while the block runs."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()
            self._consumer.close()

    def _read(self) -> None:
        while not self._ended.is_set():
            first = self._consumer.poll(0.2)
            if first is None:
                continue
            messages = [first, *self._consumer.consume(10_000, timeout=0)]
            at = now()
            for message in messages:
                made = self._made(message) if message.error() is None else None
                if made is not None:
                    self.delays.append((at, at - made))


@contextmanager
def sending_due(kafka: KafkaSettings, send: Callable[[Producer], None]) -> Generator[None]:
    """Send what is due, again and again, while the block runs.

    Args:
        kafka: How to reach the brokers.
        send: Sends what is due and not sent yet.
    """
    ended = threading.Event()

    def run() -> None:
        producer = Producer(kafka.librdkafka(**{"linger.ms": 1, "compression.type": "lz4"}))
        while not ended.is_set():
            send(producer)
            producer.poll(0)
            time.sleep(_STEP_S)
        producer.flush(30)

    thread = threading.Thread(target=run, name="bench-sender", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def paced(
    kafka: KafkaSettings, topic: str, partitions: int, rate: float, keys: int, seed: int = 0
) -> Generator[Callable[[], int]]:
    """Send clicks at a rate while the block runs; give a function that tells how many."""
    sent = 0
    random, began = Random(seed), time.monotonic()

    def send(producer: Producer) -> None:
        nonlocal sent
        due = int((time.monotonic() - began) * rate)
        while sent < due:
            value = _click(random.randrange(keys), sent)
            producer.produce(topic, value, partition=sent % partitions)
            sent += 1

    with sending_due(kafka, send):
        yield lambda: sent


def _click(user: int, number: int) -> bytes:
    return b'{"user_id":"u%d","action":"click_%d","timestamp":%d,"amount":%.1f,"sid":"s%08d"}' % (
        user,
        user % 7,
        now(),
        user % 1000 / 10 + 1,
        number,
    )
