"""Commits offsets to a consumer group, for the tools that show lag, and asks for those it has."""

import time
from collections.abc import Callable, Mapping

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from kaflow_engine.connectors.kafka.client import PATIENT, KafkaSettings, answer_of, open_admin
from kaflow_engine.connectors.kafka.errors import error_of
from kaflow_engine.errors import SinkError

_MOVING = frozenset(
    {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}
)
"""A group's coordinator starts or moves, which passes within seconds."""


def committed_offsets(
    settings: KafkaSettings, group: str, topics: Mapping[str, int], timeout: int = 10_000
) -> dict[str, dict[int, int]]:
    """Return the offsets that a group has committed, of those partitions of which it has some.

    Args:
        settings: How to reach the brokers.
        group: Its name.
        topics: Topic to its partitions.
        timeout: Milliseconds.

    Raises:
        SourceError: No broker answers, or it refuses.
    """
    client = open_admin(settings)
    places = [TopicPartition(t, p) for t, count in topics.items() for p in range(count)]
    found: dict[str, dict[int, int]] = {topic: {} for topic in topics}

    def ask() -> KafkaError | None:
        request = ConsumerGroupTopicPartitions(group, places)
        answers = client.api.list_consumer_group_offsets([request], request_timeout=PATIENT)
        try:
            answered = answer_of(answers[group], timeout).topic_partitions or ()
        except KafkaException as failure:
            return error_of(failure)
        for place in answered:
            if place.error is not None:
                return place.error
            if place.offset >= 0:
                found[place.topic][place.partition] = place.offset
        return None

    error = _patiently(ask, timeout) if places else None
    if error is not None:
        doing = f"asking for offsets of consumer group '{group}'"
        raise client.trouble(error, doing, timeout).as_source()
    return found


def _patiently(ask: Callable[[], KafkaError | None], timeout: int) -> KafkaError | None:
    """Ask again while a coordinator moves, for so many milliseconds; return what stays wrong."""
    deadline = time.monotonic() + timeout / 1000
    error = ask()
    while error is not None and error.name() in _MOVING and time.monotonic() < deadline:
        time.sleep(0.02)
        error = ask()
    return error


class GroupCommitter:
    """Commits offsets to one consumer group again and again over one connection."""

    def __init__(self, settings: KafkaSettings, group: str, timeout: int = 10_000) -> None:
        self._client = open_admin(settings)
        self._group = group
        self._timeout = timeout

    def commit(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commit `{topic: {partition: next offset}}`.

        Raises:
            SinkError: No broker answers, it refuses, or the group has members of its own.
        """
        places = [TopicPartition(t, p, o) for t, ps in offsets.items() for p, o in ps.items()]
        if not places:
            return
        error = _patiently(lambda: self._try(places), self._timeout)
        if error is None:
            return
        if error.name() in {"UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP"}:
            raise SinkError(
                f"consumer group '{self._group}' is in use by other consumers",
                hint="set 'kafka.consumer.group' to a group of this pipeline's own",
            )
        doing = f"committing offsets to consumer group '{self._group}'"
        raise self._client.trouble(error, doing, self._timeout).as_sink()

    def _try(self, places: list[TopicPartition]) -> KafkaError | None:
        request = ConsumerGroupTopicPartitions(self._group, places)
        answers = self._client.api.alter_consumer_group_offsets([request], request_timeout=PATIENT)
        try:
            answered = answer_of(answers[self._group], self._timeout).topic_partitions or ()
        except KafkaException as failure:
            return error_of(failure)
        return next((place.error for place in answered if place.error is not None), None)
