import time
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Producer, TopicPartition

from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.connectors.kafka.client import open_consumer
from kaflow_engine.errors import RunError
from kaflow_engine.testing.sample.fake_stream import FakeStream, fake_records
from kaflow_engine.testing.sample.feed import create_topics, send
from kaflow_engine.testing.services.broker import Broker

pytestmark = pytest.mark.kafka


def values(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    client = open_consumer(broker.settings).api
    partitions = client.list_topics(topic, timeout=10).topics[topic].partitions
    client.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    found: list[bytes | None] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        messages = client.consume(count - len(found), 1)
        found += [message.value() for message in messages if not message.error()]
    client.close()
    return found


def test_a_transaction_is_seen_when_it_is_committed(broker: Broker, topic_name: str):
    broker.create_topic(topic_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic_name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic_name, b"aborted")
    producer.flush()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(topic_name, b"committed")
    producer.commit_transaction()
    assert values(broker, topic_name, 1) == [b"committed"]


def test_a_topic_is_created_once(broker: Broker, topic_name: str):
    broker.create_topic(topic_name, partitions=3, compact=True)
    with pytest.raises(RunError, match=f"topic '{topic_name}' exists already"):
        broker.create_topic(topic_name)


def test_sample_records_arrive(broker: Broker):
    topics = ("sensor_readings", "devices")
    delete_topics(broker.settings, topics)  # the names are fixed, and other tests use them too
    assert create_topics(broker.settings, topics, 2) == ["sensor_readings", "devices"]
    assert create_topics(broker.settings, topics, 2) == []
    stream = FakeStream(topics=topics, entities=5, max_records=300)
    assert send(broker.settings, fake_records(stream)) == 300
    sent = [record for record in fake_records(stream) if record.topic == "devices"]
    assert sorted(map(str, values(broker, "devices", len(sent)))) == sorted(
        str(record.value) for record in sent
    )


def test_records_outlive_a_crash_and_a_restart(tmp_path: Path):
    with Broker(data=tmp_path) as broker:
        address = broker.bootstrap
        broker.create_topic("kept")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("kept", b"1")
        assert producer.flush(10) == 0
        assert "broker.session.timeout.ms=30000" in (tmp_path / "server.properties").read_text()
        broker.kill()
        assert not broker.running
        broker.start()
        # its last life must not be waited for longer than needed
        assert "broker.session.timeout.ms=6000" in (tmp_path / "server.properties").read_text()
        assert broker.bootstrap == address
        assert values(broker, "kept", 1) == [b"1"]
    with Broker(data=tmp_path) as broker:
        assert values(broker, "kept", 1) == [b"1"]


def test_a_taken_port_is_refused(broker: Broker):
    port = int(broker.bootstrap.rpartition(":")[2])
    with pytest.raises(RunError, match=f"port {port} of 127.0.0.1 is taken"):
        Broker(port).start()
