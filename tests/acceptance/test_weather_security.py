"""SASL over mutual TLS: one set of properties for Spark's client and ours, and clear refusals."""

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka import admin as kafka_admin
from kaflow_engine.connectors.kafka.admin import create_topic, describe
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.errors import BrokerAway, LoginRefused
from kaflow_engine.connectors.kafka.native.library import library
from kaflow_engine.connectors.kafka.oauth import java_options
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.runtime.source import record_source
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.broker_security import Secure
from tests.acceptance.certificates import issue
from tests.acceptance.tokens import Tokens

USER, PASSWORD = "ann", "s3cret-and-long"
LOOKS = 60

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def issued(tmp_path_factory):
    return issue(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def tokens():
    return Tokens(USER, PASSWORD)


@pytest.fixture(scope="module")
def secured(issued, tokens):
    secure = Secure(
        identity=issued.identity,
        users={USER: PASSWORD},
        clients=issued.ca,
        tokens=tokens.write_keys(issued.ca.with_name("keys.json")),
    )
    with Broker(secure=secure) as running:
        yield running


@pytest.fixture
def without_deadline(monkeypatch):
    """A clock that stands still: the wait for a broker ends because it refuses, or not at all."""
    looks = iter(range(LOOKS))

    def monotonic():
        if next(looks, None) is None:
            pytest.fail("the refusal was not noticed")
        return 0.0

    monkeypatch.setattr(kafka_admin, "time", SimpleNamespace(monotonic=monotonic))


def properties(issued, mechanism, password=PASSWORD):
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
        "ssl.ca.location": str(issued.ca),
        "ssl.certificate.location": str(issued.client),
        "ssl.key.location": str(issued.client_key),
    }


def spec(name):
    return PipelineSpec.model_validate(
        {
            "name": name,
            "query": f'SELECT e.id, e.n FROM "{name}.in" e',
            "output": {"topic": f"{name}.out", "key": "id"},
            "topics": {f"{name}.in": {"columns": {"id": "VARCHAR", "n": "BIGINT"}}},
        }
    )


@pytest.fixture(params=["tasks", "Spark"])
def reading(request, monkeypatch):
    """Who reads topics: tasks themselves, where the library is there, or Spark's source."""
    if request.param == "Spark":
        monkeypatch.setattr(record_source, "library", lambda: None)
    return request.param


@pytest.mark.spark
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_rows_arrive_over_tls(spark, secured, issued, unique, tmp_path, caplog, mechanism, reading):
    caplog.set_level("DEBUG")
    told = run(spark, secured, properties(issued, mechanism), unique, tmp_path)
    assert not [text for text in (caplog.text, *told) if PASSWORD in text]


@pytest.mark.spark
def test_rows_arrive_by_token(spark, secured, issued, tokens, unique, tmp_path, caplog, reading):
    caplog.set_level("DEBUG")
    written = properties(issued, "OAUTHBEARER")
    del written["sasl.username"], written["sasl.password"]
    with tokens.served() as address:
        written |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": USER,
            "sasl.oauthbearer.client.secret": PASSWORD,
            "sasl.oauthbearer.token.endpoint.url": address,
            "sasl.oauthbearer.scope": "read write",
        }
        # the session is older than the address
        option = java_options([written]).removeprefix("-D").split("=", 1)
        spark.sparkContext._jvm.java.lang.System.setProperty(*option)
        told = run(spark, secured, written, unique, tmp_path)
    assert not [text for text in (caplog.text, *told) if PASSWORD in text]
    assert {scope for _, scope in tokens.asked} == {"read write"}
    by_java = any(agent.startswith("Java") for agent, _ in tokens.asked)
    assert by_java is (reading == "Spark" or library() is None)
    assert any(not agent.startswith("Java") for agent, _ in tokens.asked)


def run(spark, secured, written, name, folder):
    """Send rows through a pipeline; return what was said and kept of the settings."""
    from kaflow_engine.runtime.application import run_pipelines

    config = Config.model_validate(
        {
            "kafka": {"brokers": secured.secured, "properties": written},
            "state": {"rocksdb": {"path": str(folder)}},
        }
    )
    kafka = KafkaSettings.of(config.kafka.brokers, config.kafka.properties)
    create_topic(kafka, f"{name}.in", 2)
    producer = open_producer(kafka).api
    for n in range(50):
        producer.produce(f"{name}.in", json.dumps({"id": f"k{n}", "n": n}).encode())
    assert producer.flush(30) == 0
    (planned,) = prepare([spec(name)], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    found = read_all(kafka, f"{name}.out")
    assert sorted(json.loads(v)["n"] for v in found["value"].to_pylist()) == list(range(50))
    kept = [f.read_text("latin-1") for f in folder.rglob("*.json")]
    return [repr(kafka), repr(config), repr(planned), *kept]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told_at_once(secured, issued, tmp_path, mechanism):
    wrong = "wr0ng-and-long"
    tmp_path.joinpath("kaflow.yaml").write_text(
        json.dumps(
            {
                "kafka": {
                    "brokers": secured.secured,
                    "properties": properties(issued, mechanism, wrong),
                }
            }
        )
    )
    tmp_path.joinpath("p.yaml").write_text("name: p\nquery: SELECT id FROM t\noutput: {topic: o}\n")
    done = CliRunner().invoke(
        kaflow,
        ["run", str(tmp_path / "p.yaml"), "--config", str(tmp_path / "kaflow.yaml")],
        prog_name="kaflow",
    )
    assert done.exit_code == 11, done.output
    assert "waiting for a broker" not in done.stderr
    assert f"error: the broker at {secured.secured} refused the login" in done.stderr
    assert "'sasl.password'" in done.stderr
    assert "Traceback" not in done.stderr
    assert wrong not in done.output


@pytest.mark.usefixtures("without_deadline")
def test_a_wrong_authority_is_told_at_once(secured, tmp_path):
    other = issue(tmp_path)
    kafka = KafkaSettings.of([secured.secured], properties(other, "PLAIN"))
    with pytest.raises(LoginRefused, match="no secure connection to the broker") as caught:
        describe(kafka, ["t"])
    assert "ssl.ca.location" in str(caught.value)


@pytest.mark.usefixtures("without_deadline")
@pytest.mark.parametrize("known", [False, True], ids=["no certificate", "of another authority"])
def test_a_client_without_a_certificate_is_told(secured, issued, tmp_path, known):
    written = properties(issued, "PLAIN")
    del written["ssl.certificate.location"], written["ssl.key.location"]
    if known:
        other = issue(tmp_path)
        written["ssl.certificate.location"] = str(other.client)
        written["ssl.key.location"] = str(other.client_key)
    with pytest.raises(LoginRefused) as caught:
        describe(KafkaSettings.of([secured.secured], written), ["t"])
    assert "ssl.certificate.location" in str(caught.value)


def test_plain_text_to_a_secure_port_is_told(secured):
    kafka = KafkaSettings.of([secured.secured])
    with pytest.raises(BrokerAway) as caught:
        describe(kafka, ["t"], 3_000)
    assert "'security.protocol'" in str(caught.value)
