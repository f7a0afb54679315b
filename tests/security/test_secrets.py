"""Secrets are read from files and the environment, and shown nowhere."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaflow_dagster.assets.views import view_project
from kaflow_dagster.build import build_kaflow_defs
from kaflow_dagster.runs.background import failure
from kaflow_dagster.streams.reports import report
from kaflow_engine import masking
from kaflow_engine.cli.live_view.logs import log_messages
from kaflow_engine.cli.main import _show_traceback, kaflow
from kaflow_engine.errors import ModelError, SourceError
from kaflow_engine.model.config import LoggingConfig
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.runtime.failures.failures import TaskFailed, carried, to_error
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.server import Pages
from kaflow_engine.telemetry.site import Request
from tests.engine.telemetry.examples import FULL

pytestmark = pytest.mark.slow

SECRETS = {
    "sasl": "Sasl-9f31-pass word",
    "registry": "Registry-77aa",
    "keystore": "KeyStore-5512",
    "access": "AKIA5512ACCESS",
    "s3": "s3/Secret+4410",
    "otlp": "Otlp-9921-token",
    "http": "Http-1187-token",
    "var": "Var-6620-token",
    "spark": "Spark-3303-secret",
    "variable": "Env-8812-password",
    "shop": "Shop-2217-signed",
}

CONFIG = f"""
kafka:
  brokers: ["127.0.0.1:1"]
  schemaRegistry: http://ann:{SECRETS["registry"]}@127.0.0.1:1
  properties:
    security.protocol: SASL_SSL
    sasl.mechanism: PLAIN
    sasl.username: ann
    sasl.password: "${{file:sasl-password}}"
    ssl.key.password: {SECRETS["keystore"]}
    socket.connection.setup.timeout.ms: "1000"
state:
  rocksdb:
    checkpoint:
      s3: {{enabled: true, bucket: b, accessKey: {SECRETS["access"]}, secretKey: {SECRETS["s3"]}}}
http: {{port: 0, token: {SECRETS["http"]}}}
otlp: {{headers: {{authorization: "Bearer {SECRETS["otlp"]}"}}}}
spark: {{conf: {{spark.hadoop.fs.s3a.secret.key: {SECRETS["spark"]}}}}}
env: [THEIR_PASSWORD]
vars: {{api_token: {SECRETS["var"]}}}
secrets: {{shop: {SECRETS["shop"]}}}
logging: {{level: debug}}
retry_deadline: 1s
"""
PIPELINE = """
name: p
description: calls with ${THEIR_PASSWORD}
query: SELECT id, '${THEIR_PASSWORD}' AS k FROM t
output: {topic: o, key: id, format: json}
topics: {t: {columns: {id: VARCHAR}, format: json}}
"""
LIVE = """
name: live
query: SELECT id FROM feed UNION ALL SELECT id FROM api UNION ALL SELECT id FROM sensors
output: {topic: o}
sources:
  feed: {type: websocket, url: "ws://127.0.0.1:1", send: [{secret: shop}], columns: {id: VARCHAR}}
  api:
    type: http
    url: http://127.0.0.1:1/orders
    headers: {Authorization: {prefix: "Bearer ", secret: shop}}
    columns: {id: VARCHAR}
  sensors:
    {type: mqtt, broker: "mqtt://127.0.0.1:1", topics: [a], user: u, password: {secret: shop},
    columns: {id: VARCHAR}}
"""
MODEL = """{{ config(materialized='stream', key='id') }}
SELECT id, '{{ var("api_token") }}' AS k FROM {{ source('kafka', 't') }}
"""
COMMANDS = [
    ["config", "show"],
    ["config", "show", "--json"],
    ["validate", "p.yaml", "models"],
    ["validate", "p.yaml", "models", "--json"],
    ["explain", "p.yaml"],
    ["explain", "p.yaml", "--json"],
    ["explain", "models", "m"],
    ["explain", "models", "m", "--json"],
    ["plan", "p.yaml"],
    ["plan", "p.yaml", "--json"],
    ["test", "cases.yaml"],
    ["version"],
    ["run", "p.yaml", "--plain"],
    ["validate", "live.yaml"],
    ["explain", "live.yaml", "--json"],
    ["run", "live.yaml", "--plain"],
    ["explain", "wrong.yaml"],
    ["validate", "wrong.yaml"],
    ["config", "show", "--set", "kafka.properties.sasl.password=" + SECRETS["sasl"]],
]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_known", set())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THEIR_PASSWORD", SECRETS["variable"])
    Path("sasl-password").write_text(SECRETS["sasl"] + "\n")
    Path("kaflow.yaml").write_text(CONFIG)
    Path("p.yaml").write_text(PIPELINE)
    Path("live.yaml").write_text(LIVE)
    wrong = PIPELINE.replace("name: p", "name: w").replace("FROM t", "FROM")
    Path("wrong.yaml").write_text(wrong.replace("format: json", 'format: "${THEIR_PASSWORD}"', 1))
    models = Path("models")
    models.mkdir()
    models.joinpath("m.sql").write_text(MODEL)
    models.joinpath("s.yml").write_text(
        "version: 2\nsources:\n  - name: kafka\n    tables:\n      - name: t\n"
        "        columns: [{name: id, data_type: VARCHAR}]\n"
    )
    Path("cases.yaml").write_text(
        "- case: fails\n  pipeline: p.yaml\n"
        "  given:\n    - {topic: t, at: 2026-01-01T00:00:00Z, key: a, value: {id: a}}\n"
        "  expect:\n    - {topic: o, key: a, value: {id: b, k: x}}\n"
    )
    return tmp_path


def leaked(text: str) -> list[str]:
    plain = text.replace("\\", "")
    return [name for name, secret in SECRETS.items() if secret in text or secret in plain]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_command_shows_a_secret(project, arguments):
    done: Result = CliRunner().invoke(kaflow, arguments, prog_name="kaflow")
    assert done.output
    assert leaked(done.output) == [], done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_a_traceback_shows_no_secret(project, capsys):
    load_config(project / "kaflow.yaml")
    try:
        try:
            raise _from_a_library()
        except ValueError as error:
            raise KeyError("broken") from error
    except KeyError as error:
        _show_traceback(KeyError, error, error.__traceback__)
    told = capsys.readouterr().err
    assert "_from_a_library" in told
    assert leaked(told) == []


def test_dagster_is_told_no_secret(project):
    files = [project / name for name in ("p.yaml", "models", "wrong.yaml")]
    view = view_project(files, project / "kaflow.yaml")
    assert [bool(p.problem) for p in view.pipelines] == [False, False, True]
    assert leaked(view.to_json()) == []
    definitions = build_kaflow_defs(files, config=project / "kaflow.yaml")
    graph = definitions.resolve_asset_graph()
    shown = [graph.get(key).to_asset_spec() for key in graph.get_all_asset_keys()]
    assert len(shown) > 2
    assert leaked(repr(shown)) == []
    told = failure(_from_a_library())
    assert leaked(str(told.description) + str(told.metadata)) == []


def test_the_port_shows_no_secret(project):
    config = load_config(project / "kaflow.yaml")
    error = SourceError(f"refused {SECRETS['sasl']}", hint=f"not {SECRETS['otlp']}")
    metrics = Metrics()
    metrics.take(_with(error))
    for path in ("/status", "/metrics", "/health/live", "/health/ready", "/nothing"):
        for sent in (None, "Bearer wrong", f"Bearer {SECRETS['http']}"):
            found = Pages(metrics, config.http.token).answer(Request("GET", path, sent))
            assert leaked(found.body.decode()) == []
    assert leaked(str(report(_with(error)))) == []


def test_errors_show_no_secret(project):
    load_config(project / "kaflow.yaml")
    found = [to_error(carried(_from_a_library())), to_error(_from_a_library())]
    assert [type(error) for error in found] == [TaskFailed, TaskFailed]
    for error in found:
        assert leaked(f"{error}{error!r}{error.args}") == []
        assert "refused" in str(error)


def test_log_lines_show_no_secret(project, capsys):
    config = load_config(project / "kaflow.yaml")
    logger = logging.getLogger("kaflow.kafka")
    for form in ("text", "json"):
        with log_messages(LoggingConfig(level="debug", format=form)):
            logger.debug("all of it: %s", config.model_dump())
            logger.warning("and the key %s", json.dumps(SECRETS))
    told = capsys.readouterr()
    assert "all of it" in told.err
    assert leaked(told.err + told.out) == []


def test_reprs_show_no_secret(project):
    config = load_config(project / "kaflow.yaml")
    assert leaked(repr(config)) in ([], ["var"])


def _from_a_library() -> Exception:
    return ValueError(f"jaas refused '{SECRETS['sasl']}' and \"{SECRETS['s3']}\"")


def _with(error):
    return replace(FULL, state="failed", last_error=str(error))


@pytest.mark.parametrize(
    ("written", "content", "found"),
    [
        ("${file:secret}", b"a b\n", "a b"),
        ("${file:secret}", b"a\nb\r\n", "a\nb"),
        ("x-${file:secret}-${file:secret}", b"1", "x-1-1"),
        ("${file:secret}", b" $HOME ${X} ", " $HOME ${X} "),
        ("${file:missing:-else}", b"", "else"),
        ("${file:missing:-}", b"", ""),
        ("${file:-default}", b"", "default"),
    ],
)
def test_values_from_files(tmp_path, monkeypatch, written, content, found):
    monkeypatch.chdir(tmp_path)
    Path("secret").write_bytes(content)
    Path("kaflow.yaml").write_text(f'kafka: {{properties: {{client.id: "{written}"}}}}\n')
    config = load_config(Path("kaflow.yaml"), {})
    assert config.kafka.properties["client.id"] == found


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("${file:missing}", "there is no file 'missing'\n  hint: mount it, or correct the path"),
        ("${file:folder}", "the file 'folder' cannot be read: is a directory"),
        ("${file:binary}", "the file 'binary' holds no value\n  hint: a value is UTF-8 text of"),
        ("${file:large}", "the file 'large' holds no value\n  hint: a value is UTF-8 text of"),
        ("${file:}", "'${file:}' is not a variable"),
    ],
)
def test_files_without_a_value(tmp_path, monkeypatch, written, told):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("binary").write_bytes(b"\xff\xfe\x00")
    Path("large").write_text("x" * 70_000)
    Path("kaflow.yaml").write_text(f'kafka:\n  properties: {{client.id: "{written}"}}\n')
    with pytest.raises(ModelError) as caught:
        load_config(Path("kaflow.yaml"), {})
    assert str(caught.value).startswith(f"kaflow.yaml:2: {told}")


def test_only_the_configuration_reads_files(project):
    Path("p.yaml").write_text(PIPELINE.replace("${THEIR_PASSWORD}", "${file:sasl-password}", 1))
    with pytest.raises(ModelError) as caught:
        load_pipeline(Path("p.yaml"), {"THEIR_PASSWORD": "x"})
    told = str(caught.value)
    assert told.startswith("p.yaml:3: only the configuration takes values from files")


@pytest.mark.parametrize("text", ["PLAIN", "password", "true", "1234567", "ab1"])
def test_what_could_be_any_text_is_not_masked(text):
    masking.remember([text])
    assert masking.without_secrets(f"it is {text}") == f"it is {text}"


def test_every_form_of_a_secret_is_masked():
    masking.remember(
        ['pa"ss/wörd 1', "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END KEY-----"]
    )
    shown = [
        'the pa"ss/wörd 1',
        json.dumps({"x": 'pa"ss/wörd 1'}),
        "http://me:pa%22ss%2Fw%C3%B6rd%201@host",
        "bad line: MIIEvQIBADANBgkqhkiG",
    ]
    for text in shown:
        assert masking.MASK in masking.without_secrets(text)
