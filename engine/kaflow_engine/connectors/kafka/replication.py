"""How often brokers keep the records of a topic, and which topics may lose some with one broker."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import LOGGER, KafkaSettings, open_admin
from kaflow_engine.connectors.kafka.topics import broker_count, topic_facts, topic_settings
from kaflow_engine.model.outputs.cluster_specs import ClusterConfig

_IN_SYNC = "min.insync.replicas"
_SEVERAL = 3
"""Brokers from which on topics of our own are kept more than once, so that one may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """How often the records of topics that are created are to be kept."""

    factor: int | None = None
    """Replicas; None: the brokers' default."""
    in_sync: int | None = None
    """`min.insync.replicas`; None: the brokers' default."""

    @staticmethod
    def of(kafka: ClusterConfig) -> "Replication":
        """Return what the configuration says."""
        return Replication(factor=kafka.replication_factor, in_sync=kafka.min_insync_replicas)

    def kept(self, brokers: int) -> "Replication":
        """Return the same for topics that rows depend on: what it leaves open is 3 and 2.

        Args:
            brokers: How many there are; with fewer than three their defaults count.
        """
        if brokers < _SEVERAL:
            return self
        factor = self.factor or _SEVERAL
        return Replication(factor=factor, in_sync=self.in_sync or min(factor, _SEVERAL - 1))

    def create(
        self,
        kafka: KafkaSettings,
        topic: str,
        partitions: int,
        config: Mapping[str, str] | None = None,
        timeout: int = 10_000,
        patience: int | None = None,
    ) -> bool:
        """Create a topic that is kept like this unless it exists; as `create_topic`."""
        in_sync = {} if self.in_sync is None else {_IN_SYNC: str(self.in_sync)}
        wanted = {**in_sync, **(config or {})}
        return create_topic(kafka, topic, partitions, wanted, self.factor or -1, timeout, patience)


def create_kept(
    kafka: KafkaSettings,
    topic: str,
    config: Mapping[str, str],
    wanted: Replication,
    timeout: int = 10_000,
) -> bool:
    """Create a topic of one partition that rows depend on; say whether it was created.

    Raises:
        SinkError: No broker answers, or it refuses.
    """
    brokers = broker_count(open_admin(kafka), timeout)
    return wanted.kept(brokers).create(kafka, topic, 1, config, timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """How often a topic is kept."""

    replicas: int
    in_sync: int | None
    """`min.insync.replicas`; None: the broker does not say."""

    @property
    def has_one(self) -> bool:
        """Whether a record may be acknowledged that one broker alone has."""
        return self.replicas == 1 or self.in_sync == 1


def warn_of_single_copies(
    kafka: KafkaSettings, topics: Mapping[str, str], timeout: int = 10_000
) -> None:
    """Log a warning for each topic that exists and may lose acknowledged records with one broker.

    Args:
        kafka: Where they are.
        topics: Each with what its loss would mean.
        timeout: Milliseconds.

    Raises:
        SinkError: No broker answers.
        SourceError: It does not describe a topic.
    """
    client = open_admin(kafka)
    brokers = broker_count(client, timeout)
    if brokers < 2:
        return
    for topic, facts in topic_facts(client, topics, timeout).items():
        in_sync = topic_settings(kafka, topic, timeout).get(_IN_SYNC)
        copies = Copies(replicas=facts.replicas, in_sync=None if in_sync is None else int(in_sync))
        if said := warning(brokers, topic, copies, topics[topic]):
            LOGGER.warning("%s", said)


def warning(brokers: int, topic: str, copies: Copies, meaning: str) -> str | None:
    """Return what to say of a topic; None: nothing.

    >>> warning(3, "rows", Copies(replicas=1, in_sync=1), "rows are lost")
    "topic 'rows' has one replica on 3 brokers: should its broker be lost, rows are lost"
    >>> warning(3, "rows", Copies(replicas=3, in_sync=2), "rows are lost")
    """
    if brokers < 2 or not copies.has_one:
        return None
    if copies.replicas == 1:
        return (
            f"topic '{topic}' has one replica on {brokers} brokers: should its broker be lost, "
            f"{meaning}"
        )
    return (
        f"topic '{topic}' has {_IN_SYNC} 1: should a broker be lost while it alone is in sync, "
        f"{meaning}; set it to {2}"
    )
