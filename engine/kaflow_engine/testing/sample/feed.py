"""Sends records to a broker."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from confluent_kafka import KafkaError, Message

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.testing.sample.fake import TOPICS

_FLUSH = 30_000
_STEP = 0.2


class Record(Protocol):
    """What is sent."""

    @property
    def topic(self) -> str:
        """Where it goes."""
        ...

    @property
    def key(self) -> bytes | None:
        """Its key."""
        ...

    @property
    def value(self) -> bytes:
        """Its value."""
        ...

    @property
    def timestamp(self) -> int:
        """Epoch milliseconds; 0: now."""
        ...

    @property
    def headers(self) -> tuple[tuple[str, bytes], ...]:
        """Its headers."""
        ...


def create_topics(settings: KafkaSettings, topics: Sequence[str], partitions: int) -> list[str]:
    """Create those topics that do not exist, dimensions compacted; return what was created.

    Raises:
        SinkError: the brokers do not answer or refuse.
    """
    created: list[str] = []
    for topic in topics:
        compact = topic in TOPICS and TOPICS[topic].dimension
        # sample records are as old as their fixed timestamps: they must not be cleaned away
        config = {"cleanup.policy": "compact"} if compact else {"retention.ms": "-1"}
        if create_topic(settings, topic, partitions, config):
            created.append(topic)
    return created


def send(
    settings: KafkaSettings,
    records: Iterable[Record],
    since: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda sent: None,
) -> int:
    """Send the records and return how many the brokers have taken.

    Args:
        settings: How to reach the brokers.
        records: In the order of their timestamps.
        since: The timestamp (ms) that is now: a record goes out when its time has come; None
            sends all of them at once.
        stopped: Asked before every record whether to end early.
        progress: Called now and then with how many were sent.

    Raises:
        SinkError: the brokers do not answer or refuse a record.
    """
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    client = open_producer(
        settings,
        **{
            "on_delivery": delivered,
            "message.timeout.ms": _FLUSH,
            "linger.ms": 5,
            "enable.idempotence": True,  # a batch that is sent again keeps its place
        },
    )
    began = time.monotonic()
    sent = 0
    for record in records:
        if since is not None:
            _wait(began + (record.timestamp - since) / 1000, stopped, client.api.poll)
        if stopped() or failed:
            break
        while True:
            try:
                client.api.produce(
                    record.topic,
                    record.value,
                    record.key,
                    timestamp=record.timestamp,
                    headers=[*record.headers],
                )
                break
            except BufferError:
                client.api.poll(_STEP)
        sent += 1
        if sent % 100 == 0:
            client.api.poll(0)
            progress(sent)
    left = client.api.flush(_FLUSH / 1000 + 5)
    if failed:
        raise client.trouble(failed[0], "sending records", _FLUSH).as_sink()
    progress(sent)
    return sent - left


def _wait(until: float, stopped: Callable[[], bool], poll: Callable[[float], object]) -> None:
    while (rest := until - time.monotonic()) > 0 and not stopped():
        poll(min(rest, _STEP))
