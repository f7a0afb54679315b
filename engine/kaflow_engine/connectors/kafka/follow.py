"""Looks at the newest committed records of topics, without reading all of them."""

from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import OFFSET_END, KafkaException, Message, TopicPartition

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_consumer

_BEHIND = 2_000
"""Records behind the end from which a follower jumps ahead."""
_NEAR = 20


@dataclass(frozen=True, slots=True)
class Seen:
    """One record."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    """Epoch milliseconds."""


class Follower:
    """Gives what was written to topics since it was made; where that is much, only some of it."""

    def __init__(self, settings: KafkaSettings, topics: Iterable[str]) -> None:
        self._client = open_consumer(
            settings,
            **{
                "queued.min.messages": 1_000,
                "queued.max.messages.kbytes": 1_024,
                "fetch.message.max.bytes": 65_536,
                "enable.partition.eof": False,
            },
        )
        places = [
            TopicPartition(topic, partition, OFFSET_END)
            for topic, info in describe(settings, topics).items()
            for partition in range(info.partitions)
        ]
        self._client.api.assign(places)

    def look(self, seconds: float) -> list[Seen]:
        """Return committed records that are new, oldest first; waits at most so long for one."""
        api = self._client.api
        first = api.poll(seconds)
        if first is None:
            return []
        messages = [first, *api.consume(_BEHIND, timeout=0)]
        good = [message for message in messages if message.error() is None]
        if len(messages) >= _BEHIND:
            self._jump(good)
        return [seen for message in good if (seen := _seen(message)) is not None]

    def close(self) -> None:
        """Let go of the brokers."""
        self._client.api.close()

    def _jump(self, messages: list[Message]) -> None:
        api = self._client.api
        for topic, partition in {(m.topic(), m.partition()) for m in messages}:
            if topic is None or partition is None:
                continue
            try:
                place = TopicPartition(topic, partition)
                bounds = api.get_watermark_offsets(place, timeout=1.0, cached=False)
                api.seek(TopicPartition(topic, partition, max(bounds[1] - _NEAR, 0)))
            except KafkaException:
                continue  # it is only looked at; the next look tries again


def _seen(message: Message) -> Seen | None:
    topic = message.topic()
    if topic is None:
        return None
    return Seen(topic, message.key(), message.value(), message.timestamp()[1])
