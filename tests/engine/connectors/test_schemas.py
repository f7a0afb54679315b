import json
import threading

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic, describe
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.clusters.reached import registry_of
from kaflow_engine.connectors.kafka.output.topics import (
    NewTopic,
    Subject,
    create_outputs,
    register_output,
)
from kaflow_engine.connectors.kafka.topic_schemas import resolve_schemas, sample
from kaflow_engine.connectors.kafka.topics import topic_settings
from kaflow_engine.errors import Location, SinkError, SourceError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping

AT = Location("p.yaml", 1)


def spec(topic, **topics):
    return pipeline_from_mapping(
        {
            "name": "p",
            "query": f'SELECT a.id FROM "{topic}" a',
            "output": {"topic": "out"},
            "topics": topics,
        },
        AT,
    )


def config(broker, registry=None):
    kafka = {"brokers": broker.bootstrap}
    return Config.model_validate(
        {"kafka": kafka | ({"schemaRegistry": registry.url} if registry else {})}
    )


def send(kafka, topic, values, partition=0):
    producer = open_producer(kafka).api
    for value in values:
        producer.produce(topic, value, partition=partition)
    producer.flush(30)


def test_declared_columns_need_no_broker():
    columns = (Column("id", "VARCHAR"),)
    nowhere = Config.model_validate({"kafka": {"brokers": "127.0.0.1:1"}})
    found = resolve_schemas(spec("t"), nowhere, ["t"], declared=lambda topic: columns)
    assert found == {"t": columns}


@pytest.mark.kafka
def test_a_sample_looks_into_every_partition(broker, kafka, topic_name):
    create_topic(kafka, topic_name, 2)
    send(kafka, topic_name, [b'{"id": 1}', None, b"{broken"] * 10)
    send(kafka, topic_name, [b'{"id": 2.5, "at": "x"}'], partition=1)
    found = resolve_schemas(spec(topic_name), config(broker), [topic_name])
    assert found == {topic_name: (Column("id", "DOUBLE"), Column("at", "VARCHAR"))}
    assert len(sample(kafka, topic_name, 2, limit=4)) == 4


@pytest.mark.kafka
def test_a_topic_that_does_not_exist(broker, kafka, topic_name):
    create_topic(kafka, topic_name, 1)
    wrong = topic_name + "s"
    with pytest.raises(SourceError, match=f"no topic '{wrong}'") as caught:
        resolve_schemas(spec(wrong), config(broker), [wrong])
    text = str(caught.value)
    assert text.startswith("p.yaml:1: ")
    assert f"did you mean '{topic_name}'?" in text
    assert f"--create --topic {wrong}" in text


@pytest.mark.kafka
def test_an_empty_topic_is_waited_for_and_then_given_up(broker, kafka, topic_name):
    create_topic(kafka, topic_name, 1)
    told = []
    with pytest.raises(SourceError, match="holds no JSON object yet") as caught:
        resolve_schemas(
            spec(topic_name), config(broker), [topic_name], wait_ms=700, on_wait=told.append
        )
    assert told == [
        f"waiting for a first record of topic '{topic_name}' to learn its columns; "
        f"declare topics.{topic_name}.columns to start without"
    ]
    assert f"declare topics.{topic_name}.columns" in str(caught.value)


@pytest.mark.kafka
def test_waiting_ends_with_the_first_record_or_a_stop(broker, kafka, topic_name):
    create_topic(kafka, topic_name, 1)
    told = []
    with pytest.raises(SourceError):
        resolve_schemas(
            spec(topic_name),
            config(broker),
            [topic_name],
            on_wait=told.append,
            stopped=lambda: True,
        )
    assert told == []  # nothing was waited for
    later = threading.Timer(1.0, send, (kafka, topic_name, [b'{"id": true}']))
    later.start()
    found = resolve_schemas(spec(topic_name), config(broker), [topic_name])
    later.join()
    assert found == {topic_name: (Column("id", "BOOLEAN"),)}


@pytest.mark.kafka
def test_avro_without_a_registry(broker, kafka, topic_name):
    create_topic(kafka, topic_name, 1)
    avro = spec(topic_name, **{topic_name: {"format": "avro"}})
    with pytest.raises(SourceError, match="no schema registry is configured"):
        resolve_schemas(avro, config(broker), [topic_name])


def record(*fields):
    return json.dumps(
        {
            "type": "record",
            "name": "Value",
            "fields": [{"name": name, "type": kind} for name, kind in fields],
        }
    )


@pytest.mark.kafka
@pytest.mark.services
def test_avro_columns_come_from_the_registry(broker, registry, kafka, topic_name):
    create_topic(kafka, topic_name, 1)
    settings = config(broker, registry)
    avro = spec(topic_name, **{topic_name: {"format": "avro"}})
    with pytest.raises(SourceError, match=f"has no subject '{topic_name}-value'"):
        resolve_schemas(avro, settings, [topic_name], wait_ms=0)
    client = registry_of(settings)
    assert client is not None
    client.register(f"{topic_name}-value", record(("id", "long"), ("name", "string")), "AVRO")
    found = resolve_schemas(avro, settings, [topic_name])
    assert found == {topic_name: (Column("id", "BIGINT"), Column("name", "VARCHAR"))}


@pytest.mark.services
def test_an_output_schema_is_registered_or_refused_in_the_registrys_words(registry, topic_name):
    settings = Config.model_validate({"kafka": {"schemaRegistry": registry.url}})
    client = registry_of(settings)
    values = Subject(topic=topic_name, part="value", format="avro")
    first = register_output(client, values, record(("id", "long")), AT)
    assert register_output(client, values, record(("id", "long")), AT) == first
    with pytest.raises(SinkError, match=f"refuses the schema of '{topic_name}-value'") as caught:
        register_output(client, values, record(("id", "long"), ("new", "string")), AT)
    assert caught.value.at == AT
    assert caught.value.hint


@pytest.mark.services
def test_keys_have_a_schema_of_their_own(registry, topic_name):
    settings = Config.model_validate({"kafka": {"schemaRegistry": registry.url}})
    client = registry_of(settings)
    keys = Subject(topic=topic_name, part="key", format="avro")
    register_output(client, keys, '"long"', AT)
    assert client is not None
    assert client.latest(f"{topic_name}-key").schema == '"long"'
    with pytest.raises(SinkError, match=f"refuses the schema of '{topic_name}-key'"):
        register_output(client, keys, '"string"', AT)


def test_avro_keys_of_an_output_need_a_registry():
    keys = Subject(topic="out", part="key", format="avro")
    with pytest.raises(SinkError, match="the keys of output topic 'out' are Avro, and no schema"):
        register_output(None, keys, '"long"', AT)


def test_an_avro_output_needs_a_registry():
    with pytest.raises(SinkError, match="no schema registry is configured"):
        register_output(None, Subject(topic="out", part="value", format="avro"), "{}", AT)


@pytest.mark.kafka
def test_only_missing_topics_are_created(kafka, topic_name):
    create_topic(kafka, topic_name, 1)
    other = f"{topic_name}.dead_letters"
    three = NewTopic(partitions=3, config={"retention.ms": "1234567"})
    assert create_outputs(kafka, {topic_name: three, other: three}) == [other]
    assert topic_settings(kafka, other)["retention.ms"] == "1234567"
    found = describe(kafka, [topic_name, other])
    assert [found[name].partitions for name in (topic_name, other)] == [1, 3]
