"""What brokers, or the client, refuse to take: said in the same words by both producers."""

import os
from collections.abc import Callable

import pyarrow as pa
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.deliver import deliver
from kaflow_engine.connectors.kafka.delivery.row_producer import Refusals, open_row_producer
from kaflow_engine.errors import ModelError, SinkError
from kaflow_engine.flow.records import OUTPUT
from tests.engine.connectors.producers_here import by_both, start, values

Rows = Callable[..., pa.Table]


@pytest.mark.kafka
@by_both
@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize(
    ("size", "config", "message"),
    [
        (
            1_500_000,
            {},
            "a record is larger than the topic takes (writing 1,500,001 bytes to topic '{topic}')",
        ),
        (
            2_000,
            {"max.message.bytes": "1000", "compression.type": "uncompressed"},
            "a record is larger than the topic takes (writing 2,001 bytes to topic '{topic}')",
        ),
        (
            5,
            {"message.timestamp.before.max.ms": "1000"},
            "the topic does not take the record's timestamp (writing 6 bytes to topic '{topic}')",
        ),
    ],
)
def test_a_row_the_topic_refuses(
    kafka: KafkaSettings,
    unique: str,
    output: Rows,
    size: int,
    config: dict[str, str],
    message: str,
    exactly_once: bool,
    way: str,
) -> None:
    create_topic(kafka, unique, 1, config)
    sink = start(kafka, unique, exactly_once)
    rows = output([(unique, b"k", os.urandom(size))])
    if "before" in str(config):
        rows = rows.set_column(4, OUTPUT.field(4), pa.array([1], pa.int64()))
    with pytest.raises(SinkError) as caught:
        deliver(sink, 1, rows)
    assert caught.value.message == message.format(topic=unique)
    assert values(kafka, unique) == []
    # the worker goes on with another producer
    create_topic(kafka, f"{unique}-fine", 1)
    deliver(sink, 1, output([(f"{unique}-fine", b"k", b"v")]))
    assert values(kafka, f"{unique}-fine") == [b"v"]


@pytest.mark.kafka
@by_both
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}-missing", "the topic does not exist (writing 2 bytes to topic '{}')"),
        ("{} x", "the brokers do not take the name of the topic (writing 2 bytes to topic '{}')"),
    ],
)
def test_a_topic_that_is_not_there(
    kafka: KafkaSettings, unique: str, output: Rows, name: str, message: str, way: str
) -> None:
    topic = name.format(unique)
    with pytest.raises(SinkError) as caught:
        deliver(start(kafka, unique), 1, output([(topic, b"k", b"v")]))
    assert caught.value.message == message.format(topic)


@by_both
def test_settings_that_the_client_refuses(way: str) -> None:
    wrong = KafkaSettings.of(["127.0.0.1:9"], {"linger.mss": "5"})
    with pytest.raises(ModelError, match=r"unknown Kafka property 'linger\.mss'"):
        open_row_producer(wrong, {}, Refusals())
