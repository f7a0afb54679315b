"""Creating topics on brokers that are slow to hear of them, or fenced for a moment."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Uuid

from kaflow_engine.connectors.kafka import admin as kafka_admin
from kaflow_engine.connectors.kafka import topics as kafka_topics
from kaflow_engine.connectors.kafka.admin import MissingTopic, create_topic, offsets, require
from kaflow_engine.connectors.kafka.client import Client, Complaints, KafkaSettings
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.connectors.kafka.errors import BrokerAway
from kaflow_engine.connectors.kafka.run_log import transactions as kafka_transactions
from kaflow_engine.connectors.kafka.run_log.transactions import ControlReader
from kaflow_engine.connectors.kafka.topics import TooFewBrokers, TopicFacts, ids_of, topic_facts
from kaflow_engine.errors import SinkError, SourceError
from kaflow_engine.runtime.failures.failures import is_outage
from kaflow_engine.runtime.source.end_offsets import EndOffsets

SETTINGS = KafkaSettings(("broker:9092",))
UNKNOWN, FEW = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.INVALID_REPLICATION_FACTOR
LED = SimpleNamespace(id=0, leader=SimpleNamespace(id=1))
LEADERLESS = SimpleNamespace(id=0, leader=None)
LOST = SimpleNamespace(offset=OFFSET_INVALID)
"""What librdkafka makes of an answer that was lost with its connection."""


def answered(answer: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(answer, int):
        future.set_exception(KafkaException(KafkaError(answer)))
    else:
        future.set_result(answer)
    return future


class Brokers:
    """Answers as scripted, and then as brokers do that know the topic; notes what was asked."""

    def __init__(self, **answers: Iterable[Any]) -> None:
        self._left = {name: list(script) for name, script in answers.items()}
        self.asked: list[str] = []
        self.names = ["t"]

    def _answer(self, question: str, usual: Any) -> Future[Any]:
        self.asked.append(question)
        left = self._left.get(question)
        return answered(left.pop(0) if left else usual)

    def create_topics(self, new: list[Any], **options: Any) -> dict[str, Future[Any]]:
        return {new[0].topic: self._answer("create", None)}

    def describe_topics(self, topics: Any, **options: Any) -> dict[str, Future[Any]]:
        return {"t": self._answer("describe", SimpleNamespace(partitions=[LED]))}

    def list_offsets(self, wanted: dict[Any, Any], **options: Any) -> dict[Any, Future[Any]]:
        return {place: self._answer("offsets", SimpleNamespace(offset=7)) for place in wanted}

    def describe_configs(self, resources: list[Any], **options: Any) -> dict[Any, Future[Any]]:
        value = {"default.replication.factor": SimpleNamespace(value="3")}
        return {each: self._answer("configs", value) for each in resources}

    def list_topics(self, **options: Any) -> Any:
        self.asked.append("topics")
        topic = SimpleNamespace(partitions=[LED], error=None)
        script = self._left.get("topics")
        names = script.pop(0) if script else self.names
        if isinstance(names, int):
            raise KafkaException(KafkaError(names))
        topics = dict.fromkeys(names, topic)
        return SimpleNamespace(brokers={1: None}, topics=topics)

    def get_watermark_offsets(self, *place: Any, **options: Any) -> tuple[int, int]:
        return 0, self._answer("end", SimpleNamespace(offset=7)).result().offset

    def poll(self, timeout: float) -> None:
        """Have no complaints."""


Opened = Callable[..., Brokers]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Make the clients of every module talk to scripted brokers; nothing waits between looks."""

    def opened(**answers: Iterable[Any]) -> Brokers:
        found = Brokers(**answers)
        client: Any = Client(found, SETTINGS, Complaints())  # type: ignore[type-var]
        monkeypatch.setattr(kafka_admin, "open_admin", lambda settings: client)
        monkeypatch.setattr(
            "kaflow_engine.runtime.source.end_offsets.open_admin", lambda settings: client
        )
        monkeypatch.setattr(kafka_transactions, "open_consumer", lambda *a, **more: client)
        for module in (kafka_admin, kafka_topics, kafka_transactions):
            monkeypatch.setattr(module, "_LOOK_AGAIN_S", 0)
        return found

    return opened


def test_a_topic_that_was_created_is_waited_for(brokers: Opened) -> None:
    """The broker hears of it, then of its leader, and then the leader hears of it."""
    found = brokers(
        describe=[UNKNOWN, *(SimpleNamespace(partitions=each) for each in ([], [LEADERLESS]))],
        offsets=[UNKNOWN, KafkaError.NOT_LEADER_FOR_PARTITION, LOST],
    )
    assert create_topic(SETTINGS, "t", 1)
    assert found.asked == ["create", *["describe"] * 4, "offsets", *["describe", "offsets"] * 3]


def test_a_topic_that_someone_else_created_is_waited_for(brokers: Opened) -> None:
    found = brokers(create=[KafkaError.TOPIC_ALREADY_EXISTS], describe=[UNKNOWN])
    assert not create_topic(SETTINGS, "t", 1)
    assert found.asked == ["create", "describe", "describe", "offsets"]


def test_a_topic_that_may_not_be_asked_for_is_not_waited_for(brokers: Opened) -> None:
    brokers(describe=[KafkaError.TOPIC_AUTHORIZATION_FAILED])
    with pytest.raises(SinkError, match=r"not authorised: waiting for topic 't'"):
        create_topic(SETTINGS, "t", 1)


def test_a_broker_that_is_fenced_for_a_moment_is_waited_for(brokers: Opened) -> None:
    found = brokers(create=[FEW, FEW, FEW])
    assert create_topic(SETTINGS, "t", 1)
    assert found.asked.count("create") == 4


@pytest.mark.parametrize(
    ("replication", "message", "hint"),
    [
        (
            5,
            "topic 't' cannot have 5 replicas: 1 broker is there",
            "start the brokers that are missing; else set 'kafka.replication_factor' to no more "
            "than there are",
        ),
        (
            -1,
            "topic 't' cannot have 3 replicas: 1 broker is there",
            "start the brokers that are missing; else lower their 'default.replication.factor', or "
            "set 'kafka.replication_factor' to no more than there are",
        ),
    ],
)
def test_more_replicas_than_brokers_end_in_an_error(
    brokers: Opened, replication: int, message: str, hint: str
) -> None:
    brokers(create=[FEW] * 9)
    with pytest.raises(TooFewBrokers) as caught:
        create_topic(SETTINGS, "t", 1, replication=replication, patience=-1)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert is_outage(caught.value)


@pytest.mark.parametrize(
    ("uuid", "expected"),
    [
        (Uuid(0, 0), None),
        (Uuid(-8584763214121513057, 7710162562058289152), "iNzLVz1yT59rAAAAAAAAAA"),
    ],
)
def test_brokers_that_give_topics_no_ids(uuid: Uuid, expected: str | None) -> None:
    described = SimpleNamespace(topic_id=uuid, partitions=[SimpleNamespace(replicas=[1, 2])])
    found = Brokers(describe=[described])
    client: Any = Client(found, SETTINGS, Complaints())  # type: ignore[type-var]
    facts = topic_facts(client, ["t"])
    assert facts == {"t": TopicFacts(expected, 2)}
    assert ids_of(facts) == ({} if expected is None else {"t": expected})


def test_the_end_of_a_topic_is_asked_until_the_broker_has_heard_of_it(brokers: Opened) -> None:
    found = brokers(end=[UNKNOWN, KafkaError.LEADER_NOT_AVAILABLE])
    assert ControlReader(SETTINGS, "t", 10_000, committed=False).end() == 7
    assert found.asked == ["end"] * 3


def test_the_end_of_a_topic_that_is_gone_is_an_error(brokers: Opened) -> None:
    brokers(end=[UNKNOWN] * 9)
    with pytest.raises(SourceError, match=r"the topic does not exist \(asking for the end of"):
        ControlReader(SETTINGS, "t", -1, committed=False).end()


def test_a_topic_that_has_no_leader_yet_is_an_outage(
    brokers: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = brokers(offsets=[UNKNOWN] * 3)
    with pytest.raises(BrokerAway, match="no broker leads the partition just now"):
        EndOffsets(InputTopics.all_in(SETTINGS)).ask({"t": [0]})
    with pytest.raises(BrokerAway, match="no broker leads the partition just now"):
        offsets(SETTINGS, {"t": 1}, "latest")
    found.names = []
    monkeypatch.setattr(kafka_admin, "KNOWN_BEFORE_S", 0.0)
    with pytest.raises(MissingTopic, match="no topic 't' at broker:9092"):
        EndOffsets(InputTopics.all_in(SETTINGS)).ask({"t": [0]})


def test_an_answer_that_was_lost_is_asked_for_again(brokers: Opened) -> None:
    found = brokers(offsets=[LOST, LOST])
    assert EndOffsets(InputTopics.all_in(SETTINGS)).ask({"t": [0, 1]}) == {"t": {0: 7, 1: 7}}
    assert found.asked == ["offsets"] * 4
    found = brokers(offsets=[LOST])
    assert offsets(SETTINGS, {"t": 1}, "latest") == {"t": {0: 7}}
    assert found.asked == ["offsets"] * 2


def test_answers_that_are_lost_again_and_again_are_an_outage(brokers: Opened) -> None:
    brokers(offsets=[LOST] * 3)
    with pytest.raises(BrokerAway, match="no broker at broker:9092 answered within 0 s"):
        EndOffsets(InputTopics.all_in(SETTINGS), 0).ask({"t": [0]})
    with pytest.raises(BrokerAway, match="no broker at broker:9092 answered within 0 s"):
        offsets(SETTINGS, {"t": 1}, "latest", timeout=0)


def test_a_broker_that_has_just_started_is_asked_until_it_has_learned_its_topics(
    brokers: Opened,
) -> None:
    found = brokers(offsets=[UNKNOWN], topics=[[], ["u"], ["t", "u"]])
    with pytest.raises(BrokerAway, match="no broker leads the partition just now"):
        EndOffsets(InputTopics.all_in(SETTINGS)).ask({"t": [0]})
    assert found.asked == ["offsets", *["topics"] * 3]
    found = brokers(topics=[[], ["u"], ["t", "u"]])
    assert require(SETTINGS, ["t"], unknown_for=60.0) == {"t": 1}
    assert found.asked == ["topics"] * 3


def test_a_broker_that_does_not_answer_has_not_lost_its_topics(
    brokers: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers(offsets=[UNKNOWN], topics=[KafkaError._TIMED_OUT])
    monkeypatch.setattr(kafka_admin, "KNOWN_BEFORE_S", 0.0)
    with pytest.raises(BrokerAway, match="no broker at broker:9092 answered within 1 s"):
        EndOffsets(InputTopics.all_in(SETTINGS), 1000).ask({"t": [0]})


def test_a_topic_that_was_never_read_is_missing_at_once(brokers: Opened) -> None:
    found = brokers(topics=[["u"]])
    with pytest.raises(MissingTopic, match="no topic 't' at broker:9092"):
        require(SETTINGS, ["t"])
    assert found.asked == ["topics"]
