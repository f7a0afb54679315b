"""What brokers know of topics besides their offsets: the id of each, and how often it is kept."""

# the futures of the admin client are untyped, and its names are re-exported without saying so
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateImportUsage=false

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from kaflow_engine.connectors.kafka_client import (
    PATIENT,
    Client,
    KafkaSettings,
    answer_of,
    open_admin,
)
from kaflow_engine.connectors.kafka_errors import MISSING, error_of


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


def _facts(description: Any) -> TopicFacts:
    uuid = description.topic_id
    known = uuid.get_most_significant_bits() or uuid.get_least_significant_bits()
    text = str(uuid).translate(str.maketrans("+/", "-_"))
    replicas = min((len(each.replicas) for each in description.partitions), default=0)
    return TopicFacts(text if known else None, replicas)
