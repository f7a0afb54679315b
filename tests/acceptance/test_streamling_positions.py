"""Files of Streamling go on where Streamling was, and write down where they are, on Spark, Kafka
and Postgres."""
# pyright: basic

import json
import sqlite3
from contextlib import closing

import psycopg
import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.consumer_group import GroupCommitter
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kafka_cases import new_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

PREFIX = "STREAMLING__"
BEFORE = {"postgres": 2, "sqlite": 3}
"""The next offset that Streamling has in the table, of five records."""
OF_GROUP = {"app-users": 4, "app": 1}
"""What consumer groups have: that of the source counts, and not the other one."""


def file_of(unique):
    """Return a file of three topics: one is in the table, one in a group, one was never read."""
    source = {"type": "kafka", "primary_key": "id", "data_format": "json"}
    names = ("orders", "users", "unread")
    return {
        "sources": {
            name: {**source, "topic": f"{unique}.{name}", "schema": {"id": "BIGINT"}}
            for name in names
        },
        "sinks": {
            f"{name}_out": {"type": "postgres", "from": name, "schema": unique, "table": name}
            for name in names
        },
    }


def send(broker, topic, numbers):
    producer = open_producer(broker.settings).api
    for n in numbers:
        producer.produce(topic, json.dumps({"id": n}), str(n))
    assert producer.flush(30) == 0


@pytest.mark.parametrize("backend", BEFORE)
def test_a_first_start_goes_on(backend, broker, postgres, spark, tmp_path, unique, monkeypatch):
    from kaflow_engine.runtime.application import run_pipelines

    monkeypatch.chdir(tmp_path)
    orders, users, unread = (f"{unique}.{name}" for name in ("orders", "users", "unread"))
    for topic in (orders, users, unread):
        new_topic(broker.settings, topic, 1)
        send(broker, topic, range(5))
    for group, offset in OF_GROUP.items():
        GroupCommitter(broker.settings, f"{unique}{group}").commit({users: {0: offset}})
    config = load_config(
        None,
        {
            f"{PREFIX}STATE_BACKEND__BACKEND_TYPE": backend.title(),
            f"{PREFIX}APPLICATION_ID": unique,
            f"{PREFIX}KAFKA_SOURCE__BROKERS": broker.bootstrap,
            f"{PREFIX}KAFKA_SOURCE__CONSUMER_GROUP_ID": f"{unique}app",
            "KAFLOW__POSTGRES__CONNECTIONS__POSTGRES_SINK__URL": postgres.url,
            "KAFLOW__STATE__ROCKSDB__PATH": str(tmp_path / "state"),
            "KAFLOW__SPARK__MASTER": "local[2]",
        },
    )
    table = Table(backend, postgres, unique)
    table.put(f"orders:{orders}:0", BEFORE[backend])
    (tmp_path / "shop.yaml").write_text(json.dumps(file_of(unique)))

    def run():
        spec = load_checked([tmp_path / "shop.yaml"], config, {}).pipelines
        plans = [each.plan for each in prepare(spec, config)]
        run_pipelines(plans, config, until_caught_up=True, spark=spark)

    def rows(name):
        with psycopg.connect(postgres.url) as connection:
            found = connection.execute(f"SELECT id FROM {unique}.{name} ORDER BY 1").fetchall()
        return [number for (number,) in found]

    run()
    assert rows("orders") == [*range(BEFORE[backend], 5)]
    assert rows("users") == [4]
    assert rows("unread") == [*range(5)]
    keys = (f"orders:{orders}:0", f"users:{users}:0", f"unread:{unread}:0")
    assert table.found() == dict.fromkeys(keys, 5)

    table.put(f"orders:{orders}:0", 0)  # a state that is there knows better
    send(broker, orders, [7])
    run()
    assert rows("orders") == [*range(BEFORE[backend], 5), 7]
    assert table.found()[f"orders:{orders}:0"] == 6


class Table:
    """The table of a state backend, as another program sees it."""

    def __init__(self, backend, postgres, namespace):
        self.namespace, self.sign = namespace, "%s" if backend == "postgres" else "?"
        self.name = "streamling.state" if backend == "postgres" else "state"
        self.url = postgres.url if backend == "postgres" else None
        kind = "JSONB" if self.url else "TEXT"
        if self.url:
            self.run("CREATE SCHEMA IF NOT EXISTS streamling")
        self.run(
            f"CREATE TABLE IF NOT EXISTS {self.name} (namespace TEXT, key TEXT, data {kind} "
            "NOT NULL, created_at TIMESTAMP, PRIMARY KEY(namespace, key))"
        )

    def run(self, text, values=()):
        opened = psycopg.connect(self.url) if self.url else sqlite3.connect("state.db")
        with closing(opened), opened:
            cursor = opened.execute(text.replace("?", self.sign), values)
            return cursor.fetchall() if cursor.description else []

    def put(self, key, offset):
        data = json.dumps({"offset": offset, "updated_at": 0})
        self.run(
            f"INSERT INTO {self.name} (namespace, key, data) VALUES (?, ?, ?) "
            "ON CONFLICT (namespace, key) DO UPDATE SET data = excluded.data",
            (self.namespace, key, data),
        )

    def found(self):
        asked = f"SELECT key, CAST(data AS TEXT) FROM {self.name} WHERE namespace = ?"
        rows = self.run(asked, (self.namespace,))
        return {key: json.loads(data)["offset"] for key, data in rows}
