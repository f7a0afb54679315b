"""Questions to the brokers, and their answers when something is wrong."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from confluent_kafka import TopicPartition

from kaflow_engine.connectors.kafka.admin import (
    TopicInfo,
    create_topic,
    delete_topics,
    describe,
    offsets,
    require,
)
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_consumer, open_producer
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.connectors.kafka.consumer_group import GroupCommitter, committed_offsets
from kaflow_engine.connectors.kafka.run_log.transactions import open_transactional
from kaflow_engine.connectors.kafka.topics import TooFewBrokers, topic_settings
from kaflow_engine.errors import SourceError
from kaflow_engine.runtime.source.end_offsets import EndOffsets
from kaflow_engine.state.log.batch_log import Offsets
from kaflow_engine.testing.services.broker import Broker


def write(kafka: KafkaSettings, topic: str, partition: int, count: int) -> None:
    producer = open_producer(kafka).api
    for i in range(count):
        producer.produce(topic, b"v%d" % i, b"k", partition)
    assert producer.flush(10) == 0


def test_nobody_answers() -> None:
    with pytest.raises(SourceError, match=r"no broker at 127\.0\.0\.1:1 answered within 0\.1 s"):
        describe(KafkaSettings.of(["127.0.0.1:1"]), ["x"], timeout=100)


@pytest.mark.kafka
def test_a_login_the_broker_does_not_know(kafka: KafkaSettings) -> None:
    login = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "hunter2",
    }
    with pytest.raises(SourceError, match="refused the login") as caught:
        describe(KafkaSettings.of(kafka.brokers, login), ["x"], timeout=1000)
    assert "hunter2" not in str(caught.value)


@pytest.mark.kafka
def test_topics(kafka: KafkaSettings, unique: str) -> None:
    orders, ordres = f"{unique}-orders", f"{unique}-ordres"
    assert create_topic(kafka, orders, 3, {"cleanup.policy": "compact"})
    assert not create_topic(kafka, orders, 3)
    assert describe(kafka, [orders, ordres]) == {
        orders: TopicInfo(3, True),
        ordres: TopicInfo(0, False),
    }
    assert require(kafka, [orders]) == {orders: 3}
    assert topic_settings(kafka, orders)["cleanup.policy"] == "compact"
    with pytest.raises(SourceError, match=f"no topic '{ordres}' at") as caught:
        require(kafka, [orders, ordres])
    assert caught.value.hint == f"did you mean '{orders}'?"
    with pytest.raises(SourceError, match=f"no topic '{ordres}' at"):
        offsets(kafka, {ordres: 1}, "latest")
    delete_topics(kafka, [orders, ordres])


@pytest.mark.kafka
def test_more_replicas_than_brokers(kafka: KafkaSettings, unique: str) -> None:
    with pytest.raises(TooFewBrokers, match="cannot have 2 replicas: 1 broker is"):
        create_topic(kafka, unique, 1, replication=2, patience=0)
    assert create_topic(kafka, unique, 1)


@pytest.mark.kafka
def test_offsets_with_an_open_transaction(kafka: KafkaSettings, unique: str) -> None:
    create_topic(kafka, unique, 2)
    write(kafka, unique, 0, 5)
    writer = open_transactional(kafka, unique, 60_000, 10_000).api
    writer.begin_transaction()
    writer.produce(unique, b"v", b"k", 0)
    writer.flush(10)
    assert offsets(kafka, {unique: 2}, "earliest") == {unique: {0: 0, 1: 0}}
    assert offsets(kafka, {unique: 2}, "latest") == {unique: {0: 5, 1: 0}}
    assert offsets(kafka, {unique: 2}, "latest", committed=False) == {unique: {0: 6, 1: 0}}
    writer.abort_transaction(10)


@pytest.mark.kafka
def test_a_broker_that_goes_while_it_is_asked_has_said_nothing() -> None:
    """Each look at the ends finds them, or fails; one that finds less would end a run early."""
    found: list[Offsets] = []
    asked = threading.Event()
    with Broker() as broker, ThreadPoolExecutor(1) as thread:
        create_topic(broker.settings, "t", 2)
        write(broker.settings, "t", 0, 5)
        ends = EndOffsets(InputTopics.all_in(broker.settings))

        def ask() -> None:
            with suppress(SourceError):
                while True:
                    found.append(ends.ask({"t": [0, 1]}))
                    asked.set()

        asking = thread.submit(ask)
        assert asked.wait(60)
        broker.kill()
        asking.result(60)
    assert found == [{"t": {0: 5, 1: 0}}] * len(found)


@pytest.mark.kafka
def test_a_group_commit_is_visible(kafka: KafkaSettings, unique: str) -> None:
    create_topic(kafka, unique, 2)
    write(kafka, unique, 0, 5)
    committer = GroupCommitter(kafka, unique)
    committer.commit({unique: {0: 3, 1: 0}})
    committer.commit({unique: {0: 4}})
    committer.commit({})
    consumer = open_consumer(kafka, **{"group.id": unique}).api
    places = consumer.committed([TopicPartition(unique, p) for p in (0, 1)], timeout=10)
    consumer.close()
    assert [place.offset for place in places] == [4, 0]
    assert committed_offsets(kafka, unique, {unique: 2}) == {unique: {0: 4, 1: 0}}
    assert committed_offsets(kafka, f"{unique}.other", {unique: 2}) == {unique: {}}
