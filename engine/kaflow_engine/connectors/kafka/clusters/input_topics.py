"""The topics that a pipeline reads, whichever clusters they are in, by what it calls them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kaflow_engine.connectors.kafka.admin import offsets, require
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.consumer_group import committed_offsets
from kaflow_engine.connectors.kafka.topics import topic_ids, topic_settings
from kaflow_engine.connectors.sources.contract import StartPolicy
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.topics import TopicPlace
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.model.outputs.cluster_specs import KafkaConfig, section_of


@dataclass(frozen=True, slots=True)
class OfCluster:
    """Topics of one cluster."""

    kafka: KafkaSettings
    names: Mapping[str, str]
    """Topic to what the pipeline calls it."""

    @property
    def are_renamed(self) -> bool:
        """Whether the pipeline calls one of them otherwise."""
        return any(topic != name for topic, name in self.names.items())


@dataclass(frozen=True, slots=True)
class InputTopics:
    """Where topics are; what is not said is a topic of that name in the cluster without one."""

    clusters: Mapping[str, KafkaSettings]
    """By name."""
    places: Mapping[str, TopicPlace] = field(default_factory=dict[str, TopicPlace])
    """By what the pipeline calls them."""

    @staticmethod
    def of(kafka: KafkaConfig, topics: Iterable[TopicParams]) -> "InputTopics":
        """Return where the topics of plans are."""
        places = {topic.name: topic.place for topic in topics if topic.connector is None}
        return InputTopics(clusters_of(kafka), places)

    @staticmethod
    def all_in(kafka: KafkaSettings) -> "InputTopics":
        """Return topics that are all in one cluster."""
        return InputTopics({"": kafka})

    def place(self, name: str) -> TopicPlace:
        """Return where a topic is."""
        return self.places.get(name) or TopicPlace(cluster="", topic=name)

    def with_place(self, name: str, cluster: str, topic: str) -> "InputTopics":
        """Return the same with one more topic."""
        place = TopicPlace(cluster=cluster, topic=topic)
        return InputTopics(self.clusters, {**self.places, name: place})

    def kafka(self, name: str) -> KafkaSettings:
        """Return how the cluster of a topic is reached.

        Raises:
            SourceUnfit: The configuration does not have it any more.
        """
        return self._reached(self.place(name).cluster)

    def by_cluster(self, names: Iterable[str]) -> Iterator[OfCluster]:
        """Yield topics, those of each cluster together."""
        found: dict[str, dict[str, str]] = {}
        for name in names:
            place = self.place(name)
            found.setdefault(place.cluster, {})[place.topic] = name
        for cluster, topics in sorted(found.items()):
            yield OfCluster(self._reached(cluster), topics)

    def one_cluster(self, names: Iterable[str]) -> KafkaSettings | None:
        """Return how the only cluster of topics is reached; None: there are several, or the
        pipeline calls a topic otherwise."""
        found = list(self.by_cluster(names))
        return found[0].kafka if len(found) == 1 and not found[0].are_renamed else None

    def partitions(self, names: Iterable[str], unknown_for: float = 0.0) -> dict[str, int]:
        """Return the partitions of each topic.

        Args:
            names: Of the topics.
            unknown_for: Seconds after which one that stays unknown does not exist.

        Raises:
            SourceError: One does not exist, or no broker of its cluster answers.
        """
        return {
            some.names[topic]: count
            for some in self.by_cluster(names)
            for topic, count in require(some.kafka, some.names, unknown_for=unknown_for).items()
        }

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of those that exist and have one.

        Raises:
            SourceError: No broker of a cluster answers.
        """
        return {
            some.names[topic]: known
            for some in self.by_cluster(names)
            for topic, known in topic_ids(some.kafka, some.names).items()
        }

    def offsets(
        self, counts: Mapping[str, int], when: StartPolicy, *, committed: bool = True
    ) -> dict[str, dict[int, int]]:
        """Return an offset of every partition, as `admin.offsets` does.

        Args:
            counts: Topic to its partitions.
            when: Which offsets.
            committed: Whether an end is that of committed records.

        Raises:
            SourceError: A topic cannot be read.
        """
        found: dict[str, dict[int, int]] = {}
        for some in self.by_cluster(counts):
            asked = {topic: counts[name] for topic, name in some.names.items()}
            answered = offsets(some.kafka, asked, when, committed=committed)
            found |= {some.names[topic]: ends for topic, ends in answered.items()}
        return found

    def committed(self, group: str, counts: Mapping[str, int]) -> dict[str, dict[int, int]]:
        """Return the offsets that a consumer group has committed, in the cluster of each topic.

        Args:
            group: Its name.
            counts: Topic to its partitions.

        Raises:
            SourceError: No broker of a cluster answers.
        """
        return {
            some.names[topic]: offsets
            for some in self.by_cluster(counts)
            for topic, offsets in committed_offsets(
                some.kafka, group, {topic: counts[name] for topic, name in some.names.items()}
            ).items()
        }

    def settings(self, name: str) -> dict[str, str]:
        """Return the settings of a topic as its brokers hold them; empty where they do not say."""
        return topic_settings(self.kafka(name), self.place(name).topic)

    def _reached(self, cluster: str) -> KafkaSettings:
        if cluster not in self.clusters:  # only plans of earlier runs name such a one
            raise SourceUnfit(
                f"cluster '{cluster}', of whose topics the state is made, is not in the "
                "configuration any more",
                hint=f"configure it as {section_of(cluster)} again, until the pipeline is caught "
                "up without its topics",
            )
        return self.clusters[cluster]


def clusters_of(kafka: KafkaConfig) -> dict[str, KafkaSettings]:
    """Return how each cluster of a configuration is reached, by name."""
    return {name: KafkaSettings.configured(each, name) for name, each in kafka.every.items()}


def cluster_of(kafka: KafkaConfig, name: str) -> KafkaSettings:
    """Return how a cluster of a configuration is reached."""
    return KafkaSettings.configured(kafka.every[name], name)
