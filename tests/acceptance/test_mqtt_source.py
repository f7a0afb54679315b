"""Messages of an MQTT broker into Postgres, while the pipeline and the broker are ended.

`KAFLOW_KILLS=all` for all kills.
"""
# pyright: basic

import json
import os
import signal
import time
from collections import Counter

import psycopg
import pytest
from paho.mqtt.client import CallbackAPIVersion, Client

from bench.measure.product import Product
from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.testing.services.mosquitto import PASSWORD, USER, Mosquitto
from tests.acceptance.kills import ALL

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.usefixtures("mosquitto")]

KILLS = 10 if ALL else 3
PATIENCE_S = 240


class Sensors:
    """Publishes numbers, each until the broker has acknowledged it."""

    def __init__(self, broker, unique):
        self.sent = 0
        self._unique = unique
        self._client = Client(CallbackAPIVersion.VERSION2)
        self._client.username_pw_set(USER, PASSWORD)
        self._client.reconnect_delay_set(0.1, 0.5)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()

    def send(self, count):
        numbers = range(self.sent, self.sent + count)
        self.sent += count
        for n in numbers:
            self._client.publish(f"{self._unique}/{n % 3}/t", json.dumps({"n": n}), qos=1)

    def until_sent(self):
        deadline = time.monotonic() + PATIENCE_S
        while self._client.want_write() or self._client._out_messages:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def close(self):
        self._client.disconnect()
        self._client.loop_stop()


def test_each_message_that_the_broker_has_is_there(postgres, tmp_path, unique):
    product = Product(
        folder=tmp_path / "run",
        brokers="127.0.0.1:9",
        settings={"postgres.connections.default.url": postgres.url, "secrets.mqtt": PASSWORD},
    )
    journal = JournalSource(name="s", folder=journal_folder(product.state, unique, "s"))
    with Mosquitto() as broker, psycopg.connect(postgres.url, autocommit=True) as connection:
        product.write(
            f"""\
name: {unique}
sources:
  s:
    type: mqtt
    broker: mqtt://127.0.0.1:{broker.port}
    topics: ["{unique}/+/t"]
    user: {USER}
    password: {{secret: mqtt}}
    columns: {{n: BIGINT}}
outputs:
  - query: SELECT n, decode(_headers['mqtt.topic']) AS topic FROM s
    type: postgres
    table: {unique}
    create: true
"""
        )

        def rows():
            return connection.execute(f"SELECT n, topic FROM {unique}").fetchall()

        with product:  # subscribes
            product.until((journal.folder / "subscribed.json").exists)
        sensors = Sensors(broker, unique)
        for _ in range(KILLS):
            with product:
                at = journal.latest()[0]

                def taken(at=at):
                    sensors.send(20)
                    return product.live and journal.latest()[0] > at + 300

                product.until(taken)
                os.kill(product.pid, signal.SIGKILL)
            sensors.send(100)  # while no one listens
            sensors.until_sent()
            broker.stop()
            broker.start()
        sensors.until_sent()
        sensors.close()
        with product:
            product.until(lambda: product.live and len({n for n, _ in rows()}) == sensors.sent)
            product.until(lambda: len(rows()) == journal.latest()[0])
        found = rows()
    assert all(topic == f"{unique}/{n % 3}/t" for n, topic in found)
    written = journal.read(journal.start("earliest"), journal.latest())["value"].to_pylist()
    assert Counter(n for n, _ in found) == Counter(json.loads(value)["n"] for value in written)
    assert PASSWORD not in (product.folder / "run.log").read_text()
