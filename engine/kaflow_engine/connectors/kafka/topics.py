"""What brokers know of a topic besides its records: its id, its replicas, whether it is ready."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
)

from kaflow_engine.connectors.kafka.client import (
    PATIENT,
    Client,
    KafkaSettings,
    answer_of,
    offset_of,
    open_admin,
)
from kaflow_engine.connectors.kafka.errors import MISSING, MOVING, BrokerAwaySink, error_of

TOO_FEW = frozenset({"INVALID_REPLICATION_FACTOR"})
"""What brokers answer while there are fewer of them than replicas of a new topic."""

_LOOK_AGAIN_S = 0.05


class TooFewBrokers(BrokerAwaySink):
    """A topic is to have more replicas than there are brokers; some may come back."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What is fixed about a topic for as long as it exists."""

    id: str | None
    """As `kafka-topics` prints it; None: the brokers give topics no ids."""
    replicas: int
    """Of the partition that has the fewest."""


def topic_facts(
    client: Client[AdminClient], topics: Iterable[str], timeout: int = 10_000
) -> dict[str, TopicFacts]:
    """Return what is known of those topics that exist.

    Raises:
        SourceError: No broker answers, or a topic may not be described.
    """
    names = list(topics)
    if not names:
        return {}
    answers = client.api.describe_topics(TopicCollection(names), request_timeout=PATIENT)
    found: dict[str, TopicFacts] = {}
    for topic, answer in answers.items():
        try:
            found[topic] = _facts(answer_of(answer, timeout))
        except KafkaException as failure:
            if error_of(failure).name() not in MISSING:
                doing = f"describing topic '{topic}'"
                raise client.trouble(failure, doing, timeout).as_source() from failure
    return found


def topic_ids(
    settings: KafkaSettings, topics: Iterable[str], timeout: int = 10_000
) -> dict[str, str]:
    """Return the ids of those topics that exist and have one.

    Raises:
        SourceError: As in `topic_facts`.
    """
    return ids_of(topic_facts(open_admin(settings), topics, timeout))


def ids_of(facts: dict[str, TopicFacts]) -> dict[str, str]:
    """Return the ids among facts."""
    return {topic: about.id for topic, about in facts.items() if about.id is not None}


def topic_settings(settings: KafkaSettings, topic: str, timeout: int = 10_000) -> dict[str, str]:
    """Return the settings of a topic, as the broker holds them; empty where it does not tell."""
    client = open_admin(settings)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    answers: Mapping[ConfigResource, Future[Mapping[str, Any]]] = client.api.describe_configs(
        [resource], request_timeout=PATIENT
    )
    try:
        entries = answer_of(answers[resource], timeout)
    except KafkaException:
        # asking needs a permission of its own, and nothing depends on the answer alone
        return {}
    return {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}


def set_topic(
    settings: KafkaSettings, topic: str, config: Mapping[str, str], timeout: int = 10_000
) -> bool:
    """Change some settings of a topic; return whether the broker let us."""
    client = open_admin(settings)
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    answers = client.api.incremental_alter_configs([resource], request_timeout=PATIENT)
    try:
        answer_of(answers[resource], timeout)
    except KafkaException:
        return False  # asking needs a permission of its own
    return True


def broker_count(client: Client[AdminClient], timeout: int = 10_000) -> int:
    """Return how many brokers there are.

    Raises:
        SinkError: None answers.
    """
    try:
        return len(client.api.list_topics(timeout=timeout / 1000).brokers)
    except KafkaException as failure:
        raise client.trouble(failure, "asking for brokers", timeout).as_sink() from failure


def too_few_brokers(
    client: Client[AdminClient], topic: str, replication: int, timeout: int
) -> TooFewBrokers:
    """Return the error for a topic that is to have more replicas than there are brokers."""
    there = broker_count(client, timeout)
    wanted = replication if replication > 0 else _default_replication(client, timeout)
    cure = client.settings.own("set 'kafka.replication_factor' to no more than there are")
    if replication < 1:
        cure = f"lower their 'default.replication.factor', or {cure}"
    return TooFewBrokers(
        f"topic '{topic}' cannot have {wanted or 'its'} replicas: {there} "
        f"{'broker is' if there == 1 else 'brokers are'} there",
        hint=f"start the brokers that are missing; else {cure}",
    )


def await_visible(client: Client[AdminClient], topic: str, timeout: int) -> None:
    """Return once each partition of a topic that exists has a leader, and the leader knows it.

    Brokers answer that they created a topic before they have heard of it themselves.

    Raises:
        SinkError: That does not come to pass in time, or may not be asked.
    """
    deadline = time.monotonic() + timeout / 1000
    while (error := _not_visible(client, topic, timeout)) is not None:
        passing = error.name() in MISSING | MOVING
        if not passing or time.monotonic() > deadline:
            doing = f"waiting for topic '{topic}', which was created"
            raise client.trouble(error, doing, timeout).as_sink()
        time.sleep(_LOOK_AGAIN_S)


def _not_visible(client: Client[AdminClient], topic: str, timeout: int) -> KafkaError | None:
    api = client.api
    try:
        described = api.describe_topics(TopicCollection([topic]), request_timeout=PATIENT)
        partitions = answer_of(described[topic], timeout).partitions
        if not partitions or any(each.leader is None for each in partitions):
            return KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
        wanted: dict[TopicPartition, Any] = {
            TopicPartition(topic, each.id): OffsetSpec.latest() for each in partitions
        }
        for answer in api.list_offsets(wanted, request_timeout=PATIENT).values():
            if offset_of(answer, timeout) is None:
                return KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    except KafkaException as failure:
        return error_of(failure)
    return None


def _default_replication(client: Client[AdminClient], timeout: int) -> int | None:
    """Return how many replicas brokers give a topic by themselves; None where they do not say."""
    try:
        brokers = client.api.list_topics(timeout=timeout / 1000).brokers
        resource = ConfigResource(ConfigResource.Type.BROKER, str(min(brokers, default=1)))
        answers = client.api.describe_configs([resource], request_timeout=PATIENT)
        return int(answer_of(answers[resource], timeout)["default.replication.factor"].value)
    except (KafkaException, KeyError):
        return None  # asking needs a permission of its own, and only words depend on it


def _facts(description: Any) -> TopicFacts:
    uuid = description.topic_id
    known = uuid.get_most_significant_bits() or uuid.get_least_significant_bits()
    text = str(uuid).translate(str.maketrans("+/", "-_"))
    replicas = min((len(each.replicas) for each in description.partitions), default=0)
    return TopicFacts(text if known else None, replicas)
