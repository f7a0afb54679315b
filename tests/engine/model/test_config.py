"""The configuration: its layers, their order, and the origin of every value."""

from pathlib import Path

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import find_config, load_config
from kaflow_engine.model.configuration.show_config import settings_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "config"


def test_defaults() -> None:
    config = load_config(environment={})
    assert config == Config()
    assert config.kafka.brokers == ("localhost:9092",)
    assert config.state.ttl == 3_600_000
    assert config.state.rocksdb.checkpoint.interval == 300_000
    assert (config.max_records, config.drain_deadline) == (None, 60_000)
    assert (config.most_bytes, config.kafka.transaction_timeout) == (256 * 2**20, 60_000)
    assert {setting.origin for setting in settings_of(config)} == {"default"}


def test_the_printed_configurations() -> None:
    config = load_config(FIXTURES / "global.yaml", {})
    assert config.kafka.brokers == ("broker1:9092", "broker2:9092")
    assert config.kafka.schema_registry == "http://registry:8081"
    assert config.kafka.use_avro
    assert config.kafka.consumer.group == "kaflowsql"
    assert config.kafka.consumer.auto_offset_reset == "earliest"
    assert config.state.rocksdb.path == "/data/rocksdb"
    assert config.state.rocksdb.checkpoint.interval == 300_000
    assert config.state.rocksdb.checkpoint.s3.enabled
    assert config.state.rocksdb.checkpoint.s3.bucket == "my-kaflowsql-state"
    assert config.state.rocksdb.checkpoint.s3.secret_key == "your-secret-key"
    assert config.logging.format == "json"
    assert load_config(FIXTURES / "get_started.yaml", {}).kafka.brokers == ("your-kafka:9092",)


def test_later_layers_win_and_origins_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text(
        "kafka:\n  brokers: [f:1]\n  useAvro: yes\n  properties: {a.b: 1, c.d: 2}\n"
        "state:\n  ttl: ${TTL:-3h}\n  rocksdb: {path: /f}\nlogging: {level: WARN}\n"
    )
    environment = {
        "KAFLOW_DEFAULT__STATE__TTL": "4h",
        "KAFLOW_DEFAULT__WAREHOUSE": "/d",
        "KAFLOW__KAFKA__BROKERS": "a:1, b:2",
        "KAFLOW__STATE__ROCKSDB__PATH": "/e",
        "KAFLOW__KAFKA__PROPERTIES__C_D": "3",
        "KAFLOW__LOGGING__LEVEL": "",
        "UNRELATED": "x",
    }
    overrides = {"state": {"rocksdb": {"path": "/o"}}, "kafka.properties.e.f": 4, "spark": None}
    config = load_config(file, environment, overrides)
    assert config.file == str(file)
    assert config.kafka.brokers == ("a:1", "b:2")
    assert config.kafka.properties == {"a.b": "1", "c.d": "3", "e.f": "4"}
    assert (config.state.ttl, config.state.rocksdb.path) == (10_800_000, "/o")
    assert config.logging.level == "warning"
    assert config.warehouse == "/d"
    origins = {setting.key: setting.origin for setting in settings_of(config)}
    assert origins["kafka.brokers"] == "environment KAFLOW__KAFKA__BROKERS"
    assert origins["kafka.useAvro"] == f"{file}:3"
    assert origins["kafka.properties.a.b"] == f"{file}:4"
    assert origins["kafka.properties.c.d"] == "environment KAFLOW__KAFKA__PROPERTIES__C_D"
    assert origins["kafka.properties.e.f"] == "command line"
    assert origins["state.ttl"] == f"{file}:6"
    assert origins["state.rocksdb.path"] == "command line"
    assert origins["logging.level"] == f"{file}:8"
    assert origins["logging.format"] == "default"
    assert origins["warehouse"] == "environment KAFLOW_DEFAULT__WAREHOUSE"


@pytest.mark.parametrize(
    "name",
    [
        "KAFLOW__KAFKA__SCHEMAREGISTRY",
        "KAFLOW__KAFKA__SCHEMA_REGISTRY",
        "KAFLOW__KAFKA__schemaRegistry",
        "kaflow__kafka__schema_registry",
    ],
)
def test_names_of_the_environment(name: str) -> None:
    assert load_config(None, {name: "http://r"}).kafka.schema_registry == "http://r"


def test_free_names_of_the_environment() -> None:
    names = {
        "KAFLOW__SPARK__CONF__SPARK_SQL_X": "1",
        "KAFLOW__SPARK__CONF__spark.executor.memoryOverhead": "2g",
        "KAFLOW__MAX_RECORDS": "5",
    }
    config = load_config(None, names)
    assert config.spark.conf == {"spark.sql.x": "1", "spark.executor.memoryOverhead": "2g"}
    assert config.max_records == 5


def test_brokers_may_be_one_text(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text("kafka: {brokers: '${BROKERS}'}\n")
    assert load_config(file, {"BROKERS": "a:1,[::1]:2"}).kafka.brokers == ("a:1", "[::1]:2")


def test_the_token_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc-def-4711\n")
    names = {"KAFLOW__HTTP__HOST": "0.0.0.0", "KAFLOW__HTTP__TOKEN_FILE": str(file)}
    config = load_config(None, names)
    assert config.http.token == "abc-def-4711"
    shown = {setting.key: setting for setting in settings_of(config)}
    assert (shown["http.token"].text, shown["http.token_file"].text) == ("***", str(file))
    assert shown["http.token"].origin == "environment KAFLOW__HTTP__TOKEN_FILE"
    assert without_secrets("not abc-def-4711") == "not ***"
    file.write_text(" \n")
    with pytest.raises(ModelError, match=f"TOKEN_FILE: the file '{file}' holds no token"):
        load_config(None, names)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1"])
def test_this_machine_needs_no_token(host: str) -> None:
    assert load_config(None, {"KAFLOW__HTTP__HOST": host}).http.host == host


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yml"
    file.write_text("# later\n")
    assert load_config(file, {}).state == Config().state
    assert find_config(tmp_path) == file
    assert find_config(tmp_path / "absent") is None


def test_secrets_are_neither_shown_nor_represented(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text("""\
kafka:
  brokers: ["h:1"]
  schemaRegistry: http://me:SECRET@registry:8081
  properties:
    sasl.username: SECRET
    sasl.jaas.config: x password="SECRET"
    ssl.key.password: SECRET
    ssl.keystore.password: SECRET
    ssl.key.pem: SECRET
    schema.registry.basic.auth.user.info: SECRET
    proxy: http://me:SECRET@proxy
    security.protocol: SASL_SSL
state: {rocksdb: {checkpoint: {s3: {accessKey: SECRET, secretKey: SECRET}}}}
spark:
  conf:
    spark.hadoop.fs.s3a.access.key: SECRET
    spark.hadoop.fs.s3a.secret.key: SECRET
    spark.driver.extraJavaOptions: -Djavax.net.ssl.keyStorePassword=SECRET -Xmx1g
""")
    config = load_config(file, {})
    shown = {setting.key: setting.text for setting in settings_of(config)}
    assert "SECRET" not in str(shown)
    assert "SECRET" not in repr(config)
    assert shown["kafka.schemaRegistry"] == "http://***@registry:8081"
    assert shown["kafka.properties.security.protocol"] == "SASL_SSL"
    assert shown["spark.conf.spark.driver.extraJavaOptions"].endswith("=*** -Xmx1g")


def test_what_sets_up_statements_is_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text(
        "command:\n  connections:\n    shop:\n      setup: ATTACH 'word-of-setup' AS shop\n"
        "      folders: [out]\n"
    )
    config = load_config(file, {})
    (found,) = config.command.connections.values()
    assert found.settings == {
        "setup": "ATTACH 'word-of-setup' AS shop",
        "folders": f'["{Path("out").absolute()}"]',
    }
    shown = {setting.key: setting.text for setting in settings_of(config)}
    assert shown["command.connections.shop.setup"] == "***"
    assert "word-of" not in repr(config)


def test_addresses_of_webhooks_are_secrets(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text(
        "webhook:\n  connections:\n    alerts:\n      url: https://host/word-of-path\n"
        "      headers: {Authorization: Bearer word-of-header, X-Tenant: shop}\n"
        "      secret: word-of-signature\n      timeout: 3s\n"
    )
    config = load_config(file, {})
    (found,) = config.webhook.connections.values()
    assert found.timeout == 3000
    shown = {setting.key: setting.text for setting in settings_of(config)}
    assert shown["webhook.connections.alerts.url"] == "***"
    assert "word-of" not in str(shown)
    assert "word-of" not in repr(config)
    for secret in ("word-of-header", "word-of-signature"):
        assert secret not in str(ModelError(f"no login with {secret}"))
    file.write_text(
        "webhook: {connections: {alerts: {url: host/x, headers: {'X Y': a, X-Z: 'a\\nb'}}}}\n"
    )
    with pytest.raises(ModelError) as raised:
        load_config(file, {})
    assert str(raised.value).splitlines() == [
        f"{file}:1: 'webhook.connections.alerts.url' is not a URL",
        "  hint: write it as https://host/path",
        f"{file}:1: 'webhook.connections.alerts.headers' cannot have a header called 'X Y'",
        "  hint: write a name such as X-Tenant",
    ]
