"""Polls the end offsets of topics over one connection."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from kaflow_engine.connectors.kafka.admin import no_offset
from kaflow_engine.connectors.kafka.client import (
    PATIENT,
    Client,
    KafkaSettings,
    answer_of,
    open_admin,
)
from kaflow_engine.connectors.kafka.topics import ids_of, topic_facts
from kaflow_engine.runtime.source.inputs import NamedSources
from kaflow_engine.state.log.batch_log import Offsets, TopicIds


class EndOffsets:
    """The ends of topics, as a reader of committed records sees them, and of other sources."""

    def __init__(
        self, kafka: KafkaSettings, timeout: int = 10_000, named: NamedSources | None = None
    ) -> None:
        self._kafka = kafka
        self._named = named or {}
        self._timeout = timeout

    def ask(self, partitions: Mapping[str, Iterable[int]]) -> Offsets:
        """Return the end of each partition.

        Raises:
            SourceError: No broker answers, or a topic does not exist or may not be read, or another
                source cannot be read.
        """
        latest = OffsetSpec.latest()
        wanted: dict[TopicPartition, Any] = {
            TopicPartition(topic, p): latest
            for topic, ps in partitions.items()
            if topic not in self._named
            for p in ps
        }
        found: Offsets = {
            name: dict(self._named[name].latest()) if name in self._named else {}
            for name in partitions
        }
        if not wanted:
            return found
        answers = self._client.api.list_offsets(
            wanted,
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=PATIENT,
        )
        for place, answer in answers.items():
            try:
                found[place.topic][place.partition] = answer_of(answer, self._timeout).offset
            except KafkaException as failure:
                error = no_offset(self._client, place.topic, failure, self._timeout)
                raise error from failure
        return found

    @cached_property
    def _client(self) -> Client[AdminClient]:
        return open_admin(self._kafka)

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the ids of those topics that exist and have one.

        Raises:
            SourceError: No broker answers, or a topic may not be described.
        """
        return ids_of(topic_facts(self._client, topics, self._timeout))
