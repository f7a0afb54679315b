"""The settings of Streamling as our configuration: rows of `fixtures/streamling/settings.yaml`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import find_config, load_config
from kaflow_engine.model.configuration.show_config import settings_of
from kaflow_engine.model.configuration.streamling.names import KNOWN, NOT_HERE
from kaflow_engine.model.configuration.streamling.settings import PREFIX
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.streamling.front_end import load_streamling

FILE = Path(__file__).parents[2] / "fixtures" / "streamling" / "settings.yaml"
ROWS = yaml.safe_load(FILE.read_text(encoding="utf-8"))
_OF_KAFKA = (
    *("BROKERS", "SECURITY_PROTOCOL", "SASL_MECHANISM", "SASL_USERNAME", "SASL_PASSWORD"),
    *("SCHEMA_REGISTRY_URL", "SCHEMA_REGISTRY_USERNAME", "SCHEMA_REGISTRY_PASSWORD", "CLIENT_ID"),
)
_OF_CLICKHOUSE = ("URL", "USER", "PASSWORD", "DATABASE")
_NAMED = {
    "KAFKA_SOURCE": (*_OF_KAFKA, "CONSUMER_GROUP_ID"),
    "KAFKA_SINK": _OF_KAFKA,
    "CLICKHOUSE_SOURCE": (*_OF_CLICKHOUSE, "PAGE_SIZE"),
    "CLICKHOUSE_SINK": (*_OF_CLICKHOUSE, "COMPRESSION", "COMPRESSION_LEVEL"),
    "POSTGRES_SINK": ("HOST", "PORT", "USER", "PASS", "DB", "SSLMODE"),
    "EXTERNAL_HTTP_HANDLER": ("TRIGGER_MAX_COUNT",),
    "OPEN_TELEMETRY_METRICS": ("GLOBAL_TAGS",),
    "PLUGIN": ("PATH", "CHANNEL_CAPACITY"),
    "PRINT_SINK": ("SAMPLE_EVERY",),
    "STATE_BACKEND": ("BACKEND_TYPE",),
}
NAMED = {
    *(f"{PREFIX}{section}__{name}" for section, names in _NAMED.items() for name in names),
    *(f"{PREFIX}{n}" for n in ("APPLICATION_ID", "JOB_MODE", "PIPELINE_DEFINITION_LOCATION")),
    *("RUST_LOG", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"),
}
"""The 48 variables that Streamling's documents name."""
ANY = {f"{PREFIX}APPLICATION_ID": "me"}


def shown(environment: dict[str, str], path: Path | None = None) -> dict[str, tuple[str, str]]:
    found = settings_of(load_config(path, environment))
    return {each.key: (each.text, each.origin) for each in found}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["variable"])
def test_variable(row: dict[str, Any]) -> None:
    found = shown({row["variable"]: str(row["value"]), **row.get("beside", {})})
    assert found[row["key"]] == (row["shown"], f"environment {row['variable']}")
    other = ANY if row["variable"] not in ANY else {f"{PREFIX}JOB_MODE": "true"}
    value, origin = shown(other).get(row["key"], ("", "default"))
    if row["default"] is None:
        assert origin == "default"  # Streamling has none
    else:
        assert (value, origin) == (row["default"], "Streamling's default")


def test_each_setting_has_a_row_or_a_reason() -> None:
    tested = {
        tuple(row["variable"].removeprefix(PREFIX).lower().split("__"))
        for row in ROWS
        if row["variable"].startswith(PREFIX)
    }
    assert set(KNOWN) - tested - set(NOT_HERE) == {("log_format",), ("log_level",)}
    assert NAMED <= {row["variable"] for row in ROWS}
    assert len(NAMED) == 48


def test_nothing_is_there_without_a_setting_of_it() -> None:
    assert not any("treamling" in origin for _, origin in shown({"RUST_LOG": "debug"}).values())


def test_the_environment_goes_before_the_file_and_the_file_before_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "application_id: shop\n"
        "postgres_sink: {host: db, port: 6000}\n"
        "kafka_source: {brokers: one:9092}\n"
        "plugin:\n  preprocessor_ids: [a, b]\n  preprocessor_options: {a: {mode: batch}}\n"
    )
    assert find_config(tmp_path) == path
    variable = f"{PREFIX}POSTGRES_SINK__HOST"
    found = shown({variable: "other"}, path)
    assert found["postgres.connections.postgres_sink.url"] == (
        "postgresql://***@other:6000/postgres?sslmode=disable",
        f"environment {variable}",
    )
    assert found["kafka.brokers"] == ("one:9092", f"{path}:3")
    assert found["preprocessors"] == ("streamling.a, streamling.b", f"{path}:5")
    assert found["plugins.streamling.a.settings.mode"][1] == f"{path}:6"
    ours = shown({variable: "other", "KAFLOW__KAFKA__BROKERS": "two:9092"}, path)
    assert ours["kafka.brokers"] == ("two:9092", "environment KAFLOW__KAFKA__BROKERS")


def test_an_empty_setting_of_a_file_counts_as_not_said(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "kafka_source: {brokers: 'one:9092', consumer_group_id: '', sasl_mechanism: '', "
        "schema_registry_url: ''}\nlog_level:\n"
    )
    found = shown({}, path)
    assert found["kafka.brokers"] == ("one:9092", f"{path}:1")
    assert "kafka.properties.sasl.mechanism" not in found
    assert found["kafka.schemaRegistry"] == ("http://localhost:18081", "Streamling's default")


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("log_level: info\nserver: {port: 80}\n")
    assert find_config(tmp_path) is None


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {f"{PREFIX}KAFKA_SOURCE__BROKRS": "a:1"},
            "environment STREAMLING__KAFKA_SOURCE__BROKRS: unknown setting of Streamling "
            "'kafka_source.brokrs'\n  hint: did you mean 'kafka_source.brokers'?",
        ),
        (
            {f"{PREFIX}EXTERNAL_HTTP_HANDLER__BUFFER_SIZE": "many"},
            "environment STREAMLING__EXTERNAL_HTTP_HANDLER__BUFFER_SIZE: "
            "'external_http_handler.buffer_size' must be a number greater than 0",
        ),
        (
            {f"{PREFIX}JOB_MODE": "yes"},
            "environment STREAMLING__JOB_MODE: 'job_mode' must be true or false",
        ),
        (
            {f"{PREFIX}STATE_BACKEND__BACKEND_TYPE": "Postgre"},
            "environment STREAMLING__STATE_BACKEND__BACKEND_TYPE: unknown backend_type 'Postgre'\n"
            "  hint: did you mean 'Postgres'?",
        ),
    ],
)
def test_wrong(environment: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError) as raised:
        load_config(None, environment)
    assert str(raised.value) == said


def test_a_file_whose_topics_all_begin_at_their_ends_says_so(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    source = "{type: kafka, topic: t, primary_key: id, starting_offsets: latest}"
    path.write_text(f"sources:\n  a: {source}\nsinks:\n  out: {{type: print, from: a}}\n")
    spec = load_streamling(path, {})
    (setting,) = spec.brought.settings
    assert (setting.at.file, setting.at.line) == (str(path), 2)
    config = with_brought(Config(), [spec])
    assert config.kafka.consumer.auto_offset_reset == "latest"
    path.write_text(path.read_text().replace("latest", "earliest"))
    assert load_streamling(path, {}).brought.settings == ()


def test_sinks_may_write_elsewhere_than_sources_read() -> None:
    said = {
        f"{PREFIX}KAFKA_SOURCE__BROKERS": "a:1",
        f"{PREFIX}KAFKA_SINK__BROKERS": "b:1",
        f"{PREFIX}KAFKA_SINK__SASL_PASSWORD": "word-of-kafka",
        f"{PREFIX}KAFKA_SINK__SCHEMA_REGISTRY_USERNAME": "me-of-registry",
    }
    found = shown(said)
    assert found["kafka.brokers"] == ("a:1", f"environment {PREFIX}KAFKA_SOURCE__BROKERS")
    config = load_config(None, said)
    cluster = config.kafka.clusters["kafka_sink"]
    assert cluster.brokers == ("b:1",)
    assert cluster.schema_registry == "http://me-of-registry:@localhost:18081"
    assert cluster.properties == {
        "security.protocol": "PLAINTEXT",
        "sasl.password": "word-of-kafka",
    }
    assert config.vars["streamling.kafka_sink.cluster"] == "kafka_sink"


def test_one_cluster_is_that_of_both() -> None:
    config = load_config(None, {f"{PREFIX}KAFKA_SINK__BROKERS": "b:1"})
    assert config.kafka.brokers == ("b:1",)
    assert config.kafka.clusters == {}
