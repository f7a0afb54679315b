"""Asks the brokers what the user of this client may do with topics, before anything runs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation

from kaflow_engine.connectors.kafka.client import PATIENT, KafkaSettings, answer_of, open_admin
from kaflow_engine.connectors.kafka.errors import MISSING, error_of
from kaflow_engine.errors import Location, SourceError

Operation = Literal["Read", "Write"]

_ACL = {"Read": AclOperation.READ, "Write": AclOperation.WRITE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a pipeline does with a topic."""

    topic: str
    operation: Operation
    at: Location | None = None
    """Where its author says so."""


class NotPermitted(SourceError):
    """The user may not do something that a pipeline does; asking again does not help."""

    outage = "bad settings"


def require_permissions(
    settings: KafkaSettings, needs: Sequence[Need], timeout: int = 10_000
) -> None:
    """Check that the user may do with topics what a pipeline does.

    Topics that do not exist are left to those who look for them, or create them; so are brokers
    that do not tell.

    Args:
        settings: How to reach the brokers, and as whom.
        needs: What is missing is listed in their order.
        timeout: Milliseconds for each answer.

    Raises:
        NotPermitted: Names everything that the user may not do.
        SourceError: No broker answers.
    """
    topics = list(dict.fromkeys(need.topic for need in needs))
    permitted = _permitted(settings, topics, timeout)
    lacking = [
        need
        for need in needs
        if (known := permitted.get(need.topic)) is not None and _ACL[need.operation] not in known
    ]
    if not lacking:
        return
    said = ", ".join(f"{need.operation} on topic '{need.topic}'" for need in lacking)
    user = dict(settings.properties).get("sasl.username", "<name>")
    commands = [
        f"kafka-acls.sh --bootstrap-server {settings.bootstrap} --add --allow-principal "
        f"User:{user} --operation {need.operation} --topic {need.topic}"
        for need in lacking
    ]
    raise NotPermitted(
        settings.own(f"the user of 'kafka.properties' lacks permissions: {said}"),
        lacking[0].at,
        "an administrator grants them:\n        " + "\n        ".join(commands),
    )


def _permitted(
    settings: KafkaSettings, topics: Sequence[str], timeout: int
) -> Mapping[str, Collection[AclOperation]]:
    """Return what is permitted with those topics of which the brokers tell it."""
    client = open_admin(settings)
    answers = client.api.describe_topics(
        TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=PATIENT
    )
    found: dict[str, Collection[AclOperation]] = {}
    for topic, answer in answers.items():
        try:
            known: Collection[AclOperation] | None = answer_of(
                answer, timeout
            ).authorized_operations
        except KafkaException as failure:
            name = error_of(failure).name()
            if name == "TOPIC_AUTHORIZATION_FAILED":
                found[topic] = ()  # not even asking is permitted
            elif name not in MISSING:
                doing = f"asking for permissions on topic '{topic}'"
                raise client.trouble(failure, doing, timeout).as_source() from failure
        else:
            if known:
                found[topic] = known
    return found
