"""Polls the end offsets of topics over one connection."""

from collections.abc import Iterable, Iterator, Mapping

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from kaflow_engine.connectors.kafka.admin import ask_offsets
from kaflow_engine.connectors.kafka.client import Client, KafkaSettings, open_admin
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics, OfCluster
from kaflow_engine.connectors.kafka.topics import ids_of, topic_facts
from kaflow_engine.runtime.source.inputs import NamedSources
from kaflow_engine.state.log.batch_log import Offsets, TopicIds


class EndOffsets:
    """The ends of topics, as a reader of committed records sees them, and of other sources."""

    def __init__(
        self, topics: InputTopics, timeout: int = 10_000, named: NamedSources | None = None
    ) -> None:
        self._topics = topics
        self._clients: dict[KafkaSettings, Client[AdminClient]] = {}
        self._named = named or {}
        self._timeout = timeout

    def ask(self, partitions: Mapping[str, Iterable[int]]) -> Offsets:
        """Return the end of each partition.

        Raises:
            SourceError: No broker answers, or a topic does not exist or may not be read, or another
                source cannot be read.
        """
        found: Offsets = {
            name: dict(self._named[name].latest()) if name in self._named else {}
            for name in partitions
        }
        for some in self._topics.by_cluster(partitions.keys() - self._named.keys()):
            asked = {topic: partitions[name] for topic, name in some.names.items()}
            for topic, partition, end in self._ends(some.kafka, asked):
                found[some.names[topic]][partition] = end
        return found

    def _ends(
        self, kafka: KafkaSettings, partitions: Mapping[str, Iterable[int]]
    ) -> Iterator[tuple[str, int, int]]:
        """Yield topic, partition and end of topics of one cluster."""
        latest = OffsetSpec.latest()
        wanted = {TopicPartition(topic, p): latest for topic, ps in partitions.items() for p in ps}
        for place, end in ask_offsets(self._client(kafka), wanted, self._timeout).items():
            yield place.topic, place.partition, end

    def _client(self, kafka: KafkaSettings) -> Client[AdminClient]:
        if kafka not in self._clients:
            self._clients[kafka] = open_admin(kafka)
        return self._clients[kafka]

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the ids of those topics that exist and have one.

        Raises:
            SourceError: No broker answers, or a topic may not be described.
        """
        return {
            some.names[topic]: known
            for some in self._topics.by_cluster(topics)
            for topic, known in self._ids(some).items()
        }

    def _ids(self, some: OfCluster) -> dict[str, str]:
        return ids_of(topic_facts(self._client(some.kafka), some.names, self._timeout))
