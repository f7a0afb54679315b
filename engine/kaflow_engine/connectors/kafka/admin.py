"""Asks the brokers about topics and offsets, creates topics, commits group offsets."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from confluent_kafka import IsolationLevel as Isolation
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from kaflow_engine.connectors.kafka.client import (
    PATIENT,
    Client,
    KafkaSettings,
    answer_of,
    offset_of,
    open_admin,
)
from kaflow_engine.connectors.kafka.errors import MISSING, UNREACHABLE, error_of
from kaflow_engine.connectors.kafka.topics import TOO_FEW, await_visible, too_few_brokers
from kaflow_engine.errors import SourceError

_LOOK_AGAIN_S = 0.2

_LOOK_S = 1.0
"""How often it is looked whether a broker has refused this client."""

KNOWN_BEFORE_S = 10.0
"""For how long a topic that was there must be unknown to count as deleted, in seconds.

A broker answers for a moment after its start before it has learned its topics.
"""


class MissingTopic(SourceError):
    """A topic does not exist."""


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """What the brokers say about one topic."""

    partitions: int
    exists: bool


def describe(
    settings: KafkaSettings, topics: Iterable[str], timeout: int = 10_000
) -> dict[str, TopicInfo]:
    """Say which of the topics exist and how many partitions they have.

    Raises:
        SourceError: No broker answers, or it refuses the login or a topic.
    """
    return _describe(open_admin(settings), topics, timeout)[0]


def require(
    settings: KafkaSettings,
    topics: Iterable[str],
    timeout: int = 10_000,
    unknown_for: float = 0.0,
    client: Client[AdminClient] | None = None,
) -> dict[str, int]:
    """Return the partitions of each topic.

    Args:
        settings: How to reach the brokers.
        topics: Their names.
        timeout: Milliseconds for each answer.
        unknown_for: Seconds after which a topic that stays unknown does not exist.
        client: Asks; None: another one for this.

    Raises:
        SourceError: As in `describe`, and for topics that do not exist, with the nearest names.
    """
    topics, deadline = list(topics), time.monotonic() + unknown_for
    client = client or open_admin(settings)
    while True:
        found, known = _describe(client, topics, timeout)
        missing = [topic for topic, info in found.items() if not info.exists]
        if not missing:
            return {topic: info.partitions for topic, info in found.items()}
        if time.monotonic() >= deadline:
            raise _no_such_topics(missing, known, settings)
        time.sleep(_LOOK_AGAIN_S)


def offsets(
    settings: KafkaSettings,
    topics: Mapping[str, int],
    which: Literal["earliest", "latest"] | int,
    timeout: int = 10_000,
    committed: bool = True,
    client: Client[AdminClient] | None = None,
) -> dict[str, dict[int, int]]:
    """Return an offset of every partition of `{topic: partitions}`.

    Args:
        settings: How to reach the brokers.
        topics: Topic to its partitions.
        which: The first offset, the end, or the first whose Kafka timestamp is not before these
            epoch milliseconds; -1 where there is no such record.
        timeout: Milliseconds.
        committed: An end is where a reader of committed records ends for now: before the first open
            transaction.
        client: Asks; None: another one for this.

    Raises:
        SourceError: No broker answers, or a topic does not exist or may not be read.
    """
    named = {"earliest": OffsetSpec.earliest, "latest": OffsetSpec.latest}
    spec = OffsetSpec.for_timestamp(which) if isinstance(which, int) else named[which]()
    wanted = {TopicPartition(t, p): spec for t, count in topics.items() for p in range(count)}
    found: dict[str, dict[int, int]] = {topic: {} for topic in topics}
    if wanted:
        client = client or open_admin(settings)
        for place, offset in ask_offsets(client, wanted, timeout, committed).items():
            found[place.topic][place.partition] = offset
    return found


def ask_offsets(
    client: Client[AdminClient],
    wanted: Mapping[TopicPartition, Any],
    timeout: int,
    committed: bool = True,
) -> dict[TopicPartition, int]:
    """Return the offsets of partitions.

    Args:
        client: Asks.
        wanted: The `OffsetSpec` of each.
        timeout: Milliseconds for an answer, and for connections that break before it comes.
        committed: As in `offsets`.

    Raises:
        SourceError: As in `offsets`.
    """
    level = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
    found, deadline = dict[TopicPartition, int](), time.monotonic() + timeout / 1000
    while left := {place: spec for place, spec in wanted.items() if place not in found}:
        answers = client.api.list_offsets(left, isolation_level=level, request_timeout=PATIENT)
        for place, answer in answers.items():
            try:
                offset = offset_of(answer, timeout)
                if offset is not None:
                    found[place] = offset
                elif time.monotonic() >= deadline:
                    raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))
            except KafkaException as failure:
                raise no_offset(client, place.topic, failure, timeout) from failure
    return found


def no_offset(
    client: Client[AdminClient], topic: str, failure: KafkaException, timeout: int
) -> SourceError:
    """Return why offsets of a topic that was there are not known.

    One that exists only lacks a leader for now.

    Raises:
        SourceError: No broker says which topics there are.
    """
    error = error_of(failure)
    if error.name() in MISSING:
        deadline = time.monotonic() + KNOWN_BEFORE_S
        while topic not in (known := _cluster(client, timeout).topics):
            if time.monotonic() >= deadline:
                return _no_such_topics([topic], sorted(known), client.settings)
            time.sleep(_LOOK_AGAIN_S)
        error = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    return client.trouble(error, f"asking for offsets of topic '{topic}'", timeout).as_source()


def create_topic(
    settings: KafkaSettings,
    topic: str,
    partitions: int,
    config: Mapping[str, str] | None = None,
    replication: int = -1,
    timeout: int = 10_000,
    patience: int | None = None,
) -> bool:
    """Create the topic unless it exists; say whether it was created.

    When this returns, whoever asks for the topic finds it, and each partition has a leader.

    Args:
        settings: How to reach the brokers.
        topic: Its name.
        partitions: How many partitions a new topic gets.
        config: Topic settings, such as `cleanup.policy`.
        replication: Replicas; -1 leaves it to the brokers.
        timeout: Milliseconds for each answer, and until the topic is there.
        patience: Milliseconds in which as many brokers must come as there are to be replicas; None:
            the timeout.

    Raises:
        SinkError: No broker answers, or it refuses.
        TooFewBrokers: There are not as many brokers as replicas.
    """
    client = open_admin(settings)
    new = NewTopic(
        topic, num_partitions=partitions, replication_factor=replication, config=dict(config or {})
    )
    deadline = time.monotonic() + (timeout if patience is None else patience) / 1000
    doing = f"creating topic '{topic}'"
    while (error := _create(client, new, timeout)) is not None:
        if error.name() == "TOPIC_ALREADY_EXISTS":
            break
        if error.name() not in TOO_FEW:
            raise client.trouble(error, doing, timeout).as_sink()
        if time.monotonic() > deadline:  # a broker that was fenced for a moment is back by then
            raise too_few_brokers(client, topic, replication, timeout)
        time.sleep(_LOOK_AGAIN_S)
    await_visible(client, topic, timeout)
    return error is None


def _create(client: Client[AdminClient], new: NewTopic, timeout: int) -> KafkaError | None:
    answers = client.api.create_topics(
        [new], request_timeout=PATIENT, operation_timeout=timeout / 1000
    )
    try:
        answer_of(answers[new.topic], timeout)
    except KafkaException as failure:
        return error_of(failure)
    return None


def delete_topics(settings: KafkaSettings, topics: Iterable[str], timeout: int = 10_000) -> None:
    """Delete topics; those that do not exist are fine.

    Raises:
        SinkError: No broker answers, or it refuses.
    """
    client = open_admin(settings)
    answers = client.api.delete_topics(
        list(topics), request_timeout=PATIENT, operation_timeout=timeout / 1000
    )
    for topic, answer in answers.items():
        try:
            answer_of(answer, timeout)
        except KafkaException as failure:
            if error_of(failure).name() not in MISSING:
                doing = f"deleting topic '{topic}'"
                raise client.trouble(failure, doing, timeout).as_sink() from failure


def _describe(
    client: Client[AdminClient], topics: Iterable[str], timeout: int
) -> tuple[dict[str, TopicInfo], list[str]]:
    cluster = _cluster(client, timeout)
    found: dict[str, TopicInfo] = {}
    for topic in topics:
        data = cluster.topics.get(topic)
        if data is None:
            found[topic] = TopicInfo(0, False)
            continue
        if data.error is not None and data.error.name() not in MISSING:
            doing = f"describing topic '{topic}'"
            raise client.trouble(data.error, doing, timeout).as_source()
        found[topic] = TopicInfo(len(data.partitions), len(data.partitions) > 0)
    return found, sorted(cluster.topics)


def _cluster(client: Client[AdminClient], timeout: int) -> Any:
    """Return all topics at once: asking for one by name could make the broker create it.

    The client would wait the whole time for a broker that has refused it long since.
    """
    deadline = time.monotonic() + timeout / 1000
    while True:
        left = deadline - time.monotonic()
        try:
            return client.api.list_topics(timeout=max(min(left, _LOOK_S), 0.01))
        except KafkaException as failure:
            if error_of(failure).name() in UNREACHABLE and left > _LOOK_S:
                if not client.is_refused():
                    continue
            raise client.trouble(failure, "asking for topics", timeout).as_source() from failure


def _no_such_topics(missing: list[str], known: list[str], settings: KafkaSettings) -> SourceError:
    own = [name for name in known if not name.startswith("__")]
    names = ", ".join(f"'{topic}'" for topic in missing)
    near = {topic: get_close_matches(topic, own, n=1, cutoff=0.5) for topic in missing}
    meant = [f"'{close[0]}'" for close in near.values() if close]
    if meant:
        hint = f"did you mean {', '.join(meant)}?"
    elif own and len(own) <= 12:
        hint = "known: " + ", ".join(own)
    else:
        hint = settings.own("create it, or check 'kafka.brokers' and which topics its user may see")
    plural = "topics" if len(missing) > 1 else "topic"
    return MissingTopic(f"no {plural} {names} at {settings.bootstrap}", hint=hint)
