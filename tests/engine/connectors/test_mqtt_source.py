"""The receiver of MQTT sources, against a real broker: what it acknowledges is written down."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client

from kaflow_engine.connectors.journal import sessions
from kaflow_engine.connectors.journal.journal import Journal
from kaflow_engine.connectors.journal.receivers import receiving
from kaflow_engine.errors import KaflowError, StateError
from kaflow_engine.flow.sources import MqttParams, ValueParams
from kaflow_engine.testing.services.child import free_ports
from kaflow_engine.testing.services.mosquitto import PASSWORD, USER, Mosquitto
from tests.acceptance.certificates import issue
from tests.engine.connectors.receivers_here import journal, plan, source, until, values

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("mosquitto")]

SECRETS = {"broker": PASSWORD, "guessed": "another password"}


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE_S", 0.01)


@pytest.fixture
def params(mosquitto: Mosquitto, unique: str) -> MqttParams:
    return MqttParams(
        broker=f"mqtt://127.0.0.1:{mosquitto.port}",
        topics=(f"{unique}/+/temperature", f"{unique}/alerts/#"),
        client_id=unique,
        user=ValueParams(text=USER, secret=None),
        password="broker",
        ca=None,
        max_backlog=1_000_000,
        keepalive=60_000,
    )


@contextmanager
def publishing(port: int) -> Generator["Publisher"]:
    client = Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set(USER, PASSWORD)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        yield Publisher(client)
    finally:
        client.disconnect()
        client.loop_stop()


class Publisher:
    """Publishes numbers with QoS 1, and waits until the broker has them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, topic: str, *numbers: int, retain: bool = False) -> None:
        sent = [
            self._client.publish(topic, json.dumps({"n": n}), qos=1, retain=retain) for n in numbers
        ]
        for each in sent:
            each.wait_for_publish(30)


def numbers(root: Path) -> list[int]:
    return [each["n"] for each in values(root)]


def topics(root: Path) -> set[bytes]:
    found = source(root).read({0: 0}, source(root).latest())["headers"].to_pylist()
    return {dict((h["key"], h["value"]) for h in each)["mqtt.topic"] for each in found}


def test_messages_of_topics_come_in_order(
    tmp_path: Path, mosquitto: Mosquitto, params: MqttParams, unique: str
) -> None:
    with (
        publishing(mosquitto.port) as publisher,
        receiving(plan(s=params), tmp_path, SECRETS, 10),
    ):
        until(lambda: (journal(tmp_path).folder / "subscribed.json").exists())
        publisher.send(f"{unique}/oven/temperature", *range(500))
        publisher.send(f"{unique}/oven/humidity", -1)
        publisher.send(f"{unique}/alerts/a/b", 500)
        until(lambda: source(tmp_path).latest() == {0: 501})
    assert numbers(tmp_path) == list(range(501))
    assert topics(tmp_path) == {
        f"{unique}/oven/temperature".encode(),
        f"{unique}/alerts/a/b".encode(),
    }


def test_the_broker_keeps_what_a_pipeline_that_is_down_misses(
    tmp_path: Path, mosquitto: Mosquitto, params: MqttParams, unique: str
) -> None:
    with publishing(mosquitto.port) as publisher:
        publisher.send(f"{unique}/alerts/x", 0, retain=True)
        for start in (1, 101, 201):
            with receiving(plan(s=params), tmp_path, SECRETS, 10):
                until(lambda start=start: source(tmp_path).latest() == {0: start})
            publisher.send(f"{unique}/alerts/x", *range(start, start + 100))
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            until(lambda: source(tmp_path).latest() == {0: 301})
    assert numbers(tmp_path) == list(range(301))  # what is retained came once


def test_other_topics_than_before(
    tmp_path: Path, mosquitto: Mosquitto, params: MqttParams, unique: str
) -> None:
    with publishing(mosquitto.port) as publisher:
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            until(lambda: (journal(tmp_path).folder / "subscribed.json").exists())
        others = replace(params, topics=(params.topics[1], f"{unique}/new"))
        with receiving(plan(s=others), tmp_path, SECRETS, 10):
            noted = journal(tmp_path).folder / "subscribed.json"
            until(lambda: json.loads(noted.read_text()) == [*others.topics])
            publisher.send(f"{unique}/oven/temperature", 1)
            publisher.send(f"{unique}/alerts/x", 2)
            publisher.send(f"{unique}/new", 3)
            until(lambda: source(tmp_path).latest() == {0: 2})
    assert numbers(tmp_path) == [2, 3]


def test_what_is_not_written_down_is_not_acknowledged(
    tmp_path: Path,
    mosquitto: Mosquitto,
    params: MqttParams,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def full(journal: Journal, messages: list[object], *about: object) -> int:
        tried.append(len(messages))
        raise StateError("no space left on device")

    with publishing(mosquitto.port) as publisher:
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "append", full)
            with receiving(plan(s=params), tmp_path, SECRETS, 10):
                until(lambda: (journal(tmp_path).folder / "subscribed.json").exists())
                publisher.send(f"{unique}/alerts/x", *range(50))
                until(lambda: len(tried) > 3)
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            until(lambda: source(tmp_path).latest() == {0: 50})
    assert numbers(tmp_path) == list(range(50))


def test_a_pipeline_that_is_behind_leaves_the_rest_to_the_broker(
    tmp_path: Path, mosquitto: Mosquitto, params: MqttParams, unique: str
) -> None:
    few = replace(params, max_backlog=10)
    with (
        publishing(mosquitto.port) as publisher,
        receiving(plan(s=few), tmp_path, SECRETS, 10),
    ):
        until(lambda: (journal(tmp_path).folder / "subscribed.json").exists())
        publisher.send(f"{unique}/alerts/x", *range(200))
        until(lambda: journal(tmp_path).backlog >= 10)
        assert journal(tmp_path).end < 200
        while (taken := journal(tmp_path).end) < 200:
            source(tmp_path).forget({0: taken}, 0)
            until(lambda taken=taken: journal(tmp_path).end > taken)
    assert numbers(tmp_path) == list(range(200))


def test_a_broker_that_goes_and_comes_back(tmp_path: Path, unique: str) -> None:
    with Mosquitto() as broker:
        params = MqttParams(
            broker=f"mqtt://127.0.0.1:{broker.port}",
            topics=(unique,),
            client_id=unique,
            user=ValueParams(text="", secret="user"),
            password="broker",
            ca=None,
            max_backlog=1_000,
            keepalive=60_000,
        )
        with receiving(plan(s=params), tmp_path, {**SECRETS, "user": USER}, 60):
            until(lambda: (journal(tmp_path).folder / "subscribed.json").exists())
            for start in (0, 100):
                with publishing(broker.port) as publisher:
                    publisher.send(unique, *range(start, start + 100))
                broker.stop()
                broker.start()
            until(lambda: set(numbers(tmp_path)) == set(range(200)))


@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket")  # the library leaves it to Python
def test_a_broker_with_tls(tmp_path: Path, unique: str) -> None:
    made = issue(tmp_path)
    settings = [f"certfile {made.identity}", f"keyfile {made.identity}"]
    with Mosquitto(settings) as broker:
        params = MqttParams(
            broker=f"mqtts://127.0.0.1:{broker.port}",
            topics=(unique,),
            client_id=unique,
            user=ValueParams(text=USER, secret=None),
            password="broker",
            ca=str(made.ca),
            max_backlog=1_000,
            keepalive=60_000,
        )
        with receiving(plan(s=params), tmp_path / "1", SECRETS, 10):
            until(lambda: (journal(tmp_path / "1").folder / "subscribed.json").exists())
        assert refused(tmp_path / "2", replace(params, ca=None)) == (
            f"the certificate of the broker {params.broker} cannot be verified\n"
            "  hint: name the file with its authority in 'ca' of the source"
        )
        assert refused(tmp_path / "3", replace(params, ca="/nowhere.pem")) == (
            "'/nowhere.pem' cannot be read\n  hint: correct 'ca' of the source: a file of PEM"
        )


def refused(root: Path, params: MqttParams) -> str:
    """Return the verdict of a source."""
    with receiving(plan(s=params), root, SECRETS, 0.05):
        until(lambda: journal(root).failure is not None)
        with pytest.raises(KaflowError) as raised:
            source(root).latest()
    assert raised.value.outage in ("stop", "bad settings")
    return str(raised.value)


def test_a_login_that_is_wrong(tmp_path: Path, params: MqttParams) -> None:
    assert refused(tmp_path, replace(params, password="guessed")) == (
        f"the broker {params.broker} does not let us in: not authorized\n"
        "  hint: correct 'user' and 'password' of the source"
    )


def test_a_broker_that_is_not_there(tmp_path: Path, params: MqttParams) -> None:
    away = replace(params, broker=f"mqtt://127.0.0.1:{free_ports(1)[0]}")
    assert refused(tmp_path, away) == (
        f"source 's' gave nothing for 0.05 s: the broker {away.broker} cannot be reached: "
        "connection refused\n"
        "  hint: start the pipeline again when it is back, or raise 'retry_deadline'"
    )


def test_a_client_that_is_not_installed(
    tmp_path: Path, params: MqttParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    with (
        pytest.raises(KaflowError) as raised,
        receiving(plan(s=params), tmp_path, SECRETS, 10),
    ):
        pass
    assert str(raised.value) == (
        "sources of type mqtt need the client paho-mqtt, which is not installed here\n"
        "  hint: run pip install 'kaflow-dagster[mqtt]'"
    )
