"""What sinks of SQLFlow files become, and what they bring of the configuration."""
# pyright: basic

from pathlib import Path

import pytest
import yaml

from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.project import read_project

CLICKS = Path(__file__).parents[3] / "fixtures" / "sqlflow" / "clicks.yml"
ALLOWED = Config.model_validate({"sql": {"attach": ["sqlite"], "write": ["out"]}})


def load(change):
    text = yaml.safe_load(CLICKS.read_text())
    change(text["pipeline"])
    return yaml.safe_dump(text, sort_keys=False)


@pytest.fixture
def lowered(tmp_path):
    def lower(change):
        (tmp_path / "p.yml").write_text(load(change))
        found = read_project([tmp_path / "p.yml"], ALLOWED, {})
        assert found.mistakes == ()
        (spec,) = found.pipelines
        return spec, with_brought(ALLOWED, [spec])

    return lower


@pytest.mark.parametrize(
    ("sink", "target", "settings", "connection"),
    [
        ({"type": "console"}, "console:rows", {"lines": "rows"}, None),
        ({"type": "noop"}, "blackhole:rows", {}, None),
        (
            {
                "type": "clickhouse",
                "clickhouse": {"dsn": "clickhouse://u:p@h:8123/d", "table": "t"},
            },
            "clickhouse:clicks.pipeline.sink.t",
            {"connection": "clicks.pipeline.sink", "table": "t", "create": False},
            ("clickhouse", "http://u:p@h:8123/d"),
        ),
        (
            {"type": "postgres", "postgres": {"dsn": "postgresql://u:p@h/d", "table": "t"}},
            "postgres:clicks.pipeline.sink.t",
            {"connection": "clicks.pipeline.sink", "table": "t", "create": False},
            ("postgres", "postgresql://u:p@h/d"),
        ),
        (
            {"type": "iceberg", "iceberg": {"catalog_name": "lake", "table_name": "shop.t"}},
            "iceberg:lake.shop.t",
            {"connection": "lake", "table": "shop.t", "create": False, "interval": 10_000},
            None,
        ),
        (
            {
                "type": "sqlcommand",
                "sqlcommand": {
                    "sql": "COPY sqlflow_sink_batch TO 'out/$id.parquet'",
                    "substitutions": [{"var": "$id", "type": "uuid4"}],
                },
            },
            "command:rows",
            {
                "connection": "default",
                "sql": "COPY batch TO 'out/{batch}.parquet'",
                "ledger": None,
            },
            None,
        ),
    ],
)
def test_a_sink(lowered, sink, target, settings, connection):
    spec, config = lowered(lambda pipeline: pipeline.update(sink=sink))
    (write,) = spec.writes
    assert write.target == target
    assert write.sink.settings == settings
    if connection is not None:
        kind, url = connection
        assert config.connections[kind]["clicks.pipeline.sink"].url == url


def test_a_topic_with_a_key(lowered):
    kafka = {"brokers": ["localhost:9092"], "topic": "out", "key": "page"}
    spec, _ = lowered(lambda pipeline: pipeline.update(sink={"type": "kafka", "kafka": kafka}))
    (write,) = spec.writes
    assert (write.output.topic, write.output.key, write.output.format) == (
        "out",
        "page",
        "json_spaced",
    )


def test_how_brokers_are_reached_is_added_to_what_the_configuration_says(lowered):
    def secured(pipeline):
        pipeline["source"]["kafka"].update(
            security_protocol="SASL_SSL",
            ssl={"ca_location": "ca.pem", "endpoint_identification_algorithm": "none"},
            sasl={"mechanism": "PLAIN", "username": "me", "password": "pass-word"},
        )

    spec, _ = lowered(secured)
    kept = {"client.id": "mine"}
    config = Config.model_validate({"kafka": {"properties": kept}, "sql": {"attach": ["sqlite"]}})
    config = with_brought(config, [spec])
    assert config.kafka.properties == {
        **kept,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "pass-word",
    }
    assert "pass-word" not in repr(config)


@pytest.mark.parametrize(
    ("error", "policy", "letters"),
    [
        ({}, "fail", None),
        ({"policy": "ignore"}, "skip", None),
        ({"policy": "DLQ"}, "dead_letter", None),
        (
            {
                "policy": "DLQ",
                "dlq": {
                    "type": "kafka",
                    "kafka": {"brokers": ["localhost:9092"], "topic": "bad"},
                },
            },
            "dead_letter",
            "bad",
        ),
    ],
)
def test_what_becomes_of_bad_messages(lowered, error, policy, letters):
    spec, _ = lowered(lambda pipeline: pipeline.update(on_error=error))
    assert (spec.topic("clicks").on_error, spec.dead_letters.topic) == (policy, letters)


def of_a_socket(sink):
    kafka = {"brokers": ["far:9092"], "security_protocol": "SSL", "topic": "bad"}
    source = {"type": "websocket", "websocket": {"uri": "wss://x"}, "columns": {"u": "INT"}}
    return {
        "source": source,
        "on_error": {"policy": "DLQ", "dlq": {"type": "kafka", "kafka": kafka}},
        "handler": {"type": "handlers.InferredMemBatch", "sql": "SELECT u FROM batch"},
        "sink": sink,
    }


def test_bad_messages_go_to_the_brokers_that_the_file_names(lowered):
    spec, config = lowered(lambda pipeline: pipeline.update(of_a_socket({"type": "console"})))
    assert spec.dead_letters.topic == "bad"
    assert config.kafka.brokers == ("far:9092",)
    assert config.kafka.properties == {"security.protocol": "SSL"}


def test_brokers_that_are_others_are_a_cluster_of_the_file(lowered):
    sink = {"type": "kafka", "kafka": {"brokers": ["near:9092"], "topic": "out"}}
    spec, config = lowered(lambda pipeline: pipeline.update(of_a_socket(sink)))
    assert (spec.writes[0].output.cluster, config.kafka.brokers) == (None, ("near:9092",))
    assert spec.dead_letters.cluster == "clicks-dlq"
    far = config.kafka.clusters["clicks-dlq"]
    assert (far.brokers, far.properties) == (("far:9092",), {"security.protocol": "SSL"})


def test_rows_and_dead_letters_share_a_cluster_by_one_broker(lowered):
    def changed(pipeline):
        elsewhere = {"brokers": ["a:9092", "b:9092"], "topic": "out"}
        letters = {"brokers": ["b:9092", "c:9092"], "topic": "bad"}
        pipeline["sink"] = {"type": "kafka", "kafka": elsewhere}
        pipeline["on_error"] = {"policy": "DLQ", "dlq": {"type": "kafka", "kafka": letters}}

    spec, config = lowered(changed)
    assert spec.writes[0].output.cluster == spec.dead_letters.cluster == "clicks-sink"
    assert {name: one.brokers for name, one in config.kafka.clusters.items()} == {
        "clicks-sink": ("a:9092", "b:9092")
    }


def test_the_environment_stands_over_a_cluster_of_a_file(tmp_path):
    text = CLICKS.read_text().replace("{brokers: [localhost:9092], topic", "{brokers: [a:1], topic")
    (tmp_path / "p.yml").write_text(text)
    (spec,) = read_project([tmp_path / "p.yml"], ALLOWED, {}).pipelines
    said = {"kafka.clusters.clicks-sink.brokers": "mine:1", "sql.attach": "sqlite"}
    config = with_brought(load_config(None, {}, said), [spec])
    assert config.kafka.clusters["clicks-sink"].brokers == ("mine:1",)


def test_bad_messages_in_a_table(lowered):
    dsn = {"dsn": "postgresql://u:p@h/d", "table": "bad"}
    error = {"policy": "DLQ", "dlq": {"type": "postgres", "postgres": dsn}}
    spec, config = lowered(lambda pipeline: pipeline.update(on_error=error))
    said, name = spec.dead_letters, "clicks.pipeline.on_error.dlq"
    assert (said.type, said.table, said.connection) == ("postgres", "bad", name)
    assert config.postgres.connections[name].url == "postgresql://u:p@h/d"


def test_a_key_of_several_columns(lowered):
    table = {"dsn": "postgresql://h/d", "table": "t", "mode": "upsert", "key": ["page", "name"]}
    spec, _ = lowered(lambda p: p.update(sink={"type": "postgres", "postgres": table}))
    assert spec.writes[0].sink.key_columns == ("page", "name")


def test_settings_of_the_pipeline(lowered):
    more = {
        "schema_registry": {"url": "http://registry:8081"},
        "drain_deadline_seconds": 7,
        "state": {"path": "/var/lib/state.db"},
    }

    def changed(pipeline):
        pipeline.update(more)
        pipeline["source"]["kafka"].update(value={"format": "avro"}, event_time={"path": "at"})

    spec, config = lowered(changed)
    assert config.kafka.schema_registry == "http://registry:8081"
    assert config.drain_deadline == 7_000
    topic = spec.topic("clicks")
    assert (topic.format, topic.event_time, topic.types) == ("avro", "at", {"at": "TIMESTAMP"})


def test_a_broker_of_mqtt(lowered):
    def changed(pipeline):
        login = {"username": "me", "password": "pass-word"}
        mqtt = {"broker": "ssl://edge:8883", "topics": ["a/#"], "client_id": "e", **login}
        pipeline["source"] = {"type": "mqtt", "mqtt": mqtt, "columns": {"u": "INT"}}
        pipeline["handler"] = {"type": "handlers.InferredMemBatch", "sql": "SELECT u FROM batch"}

    spec, config = lowered(changed)
    source = spec.sources["mqtt"]
    assert (source.broker, source.topics, source.client_id) == ("mqtts://edge:8883", ("a/#",), "e")
    assert (source.user.prefix, source.password.secret) == ("me", "clicks.mqtt")
    assert config.secrets["clicks.mqtt"] == "pass-word"
    assert "pass-word" not in repr(config)


def test_topics_that_are_one_batch(lowered):
    spec, _ = lowered(lambda pipeline: pipeline["source"]["kafka"].update(topics=["a", "b"]))
    assert spec.queried["batch"].query == 'SELECT * FROM "a" UNION ALL SELECT * FROM "b"'
    assert set(spec.topics) == {"a", "b"}
