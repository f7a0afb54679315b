"""Files of Streamling with plugins: killed on Spark again and again, each row is there once.

The hero of its documents goes from a plugin over SQL, a service and a script into Postgres. Beside
it the sink of the page about plugins, which is exactly once by the number of its marker, says what
left twice. `KAFLOW_KILLS=all` makes 20 kills instead of three.
"""
# pyright: basic

import json
import re
import sqlite3
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.config import Config
from tests.acceptance.kafka_cases import new_topic
from tests.acceptance.kills import share
from tests.acceptance.run_child import killed_at, ran
from tests.acceptance.test_streamling import FIXTURES, avro, registered
from tests.conftest import EXAMPLE_PLUGINS
from tests.page import blocks
from tests.plugins.basic_plugin import row_of
from tests.receiver import Answer, running_receiver

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

POINTS = (
    "batch_logged",
    "rows_produced",
    "before_commit",
    "committed",
    "before_table",
    "table_taken",
    "before_commit_log",
    "commit_logged",
)
"""What a batch passes: tasks commit to Postgres, the driver to the sink of the page."""
KILLS = [
    (point, batch)
    for batch, point in enumerate(share([POINTS[n % len(POINTS)] for n in range(20)], 3), 2)
]
"""Each in a batch behind that of the one before: what is open runs again, and goes on."""
BATCH, PIECE = 5, 10
"""Orders of a batch, and of an answer of the API."""
ORDERS = BATCH * (len(KILLS) + 4)
OLD = 4
"""Each so many orders, one is older than an hour."""
NOW = datetime.now(UTC)
CHANGES = [("c", 1), ("c", 2), ("u", 1), ("d", 2), ("r", 3)]


def order(number):
    old = timedelta(hours=2 if number % OLD == 0 else 0)
    return {
        "id": number,
        "amount": 700.0 if number % 3 else 400.0,
        "created_at": (NOW - old).isoformat(),
    }


class Partner:
    """The API of orders, and the service that enriches them, which says something else each
    time."""

    def __init__(self, postgres, table):
        self.said = defaultdict(set)
        self.done = []
        self._postgres, self._table = postgres, table

    def __call__(self, request):
        url = urlsplit(request.path)
        if url.path == "/enrich":
            rows = json.loads(request.body)
            return Answer(200, json.dumps([self.enriched(row) for row in rows]))
        asked = parse_qs(url.query)
        if "done" in asked:
            self.done.append((int(asked["done"][0]), self.written()))
            return Answer(200, "[]")
        after = int(asked["after"][0])
        last = min(after + PIECE, ORDERS)
        return Answer(200, json.dumps([order(n) for n in range(after + 1, last + 1)]))

    def enriched(self, row):
        amount = row["amount"] + 400.0 * len(self.said[row["id"]])
        self.said[row["id"]].add(amount)
        return {"amount": amount}

    def written(self):
        with psycopg.connect(self._postgres.url) as connection:
            found = connection.execute(f"SELECT id FROM {self._table}").fetchall()
        return {number for (number,) in found}


@pytest.fixture
def packages(tmp_path):
    """Install the sink of the page; the plugins of the examples are found by their path."""
    page = tmp_path / "page"
    about = page / "acme_ledger-1.0.dist-info"
    about.mkdir(parents=True)
    about.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: acme-ledger\nVersion: 1\n")
    about.joinpath("entry_points.txt").write_text(
        "[kaflow.sinks]\nacme.ledger=acme_ledger:Ledger\n"
    )
    (code,) = (block for block in blocks("python", "plugins.md") if "class Ledger" in block)
    page.joinpath("acme_ledger.py").write_text(code)
    return [page]


@pytest.fixture
def topics(broker, registry):
    """Fill the topics that the examples name."""
    producer = open_producer(broker.settings).api
    for topic in ("raw.events", "app.events"):
        new_topic(broker.settings, topic, 1)
        schema = registered(registry, topic, ("id", "long"), ("v", "string"))
        for op, number in CHANGES:
            value = avro(schema, number, op)
            producer.produce(topic, value, str(number), headers=[("dbz.op", op.encode())])
    assert producer.flush(30) == 0


def files(folder, url, ledger, unique):
    """Write the examples down, word by word but for addresses."""
    folder.mkdir()
    for name in ("hero", "custom_source", "custom_transform", "custom_sink", "plugins"):
        text = (FIXTURES / "seed" / f"{name}.yaml").read_text("utf-8")
        text = text.replace("http://localhost:8087", url)
        text = re.sub("schema: (app|public)", f"schema: {unique}", text)
        if name == "hero":
            about = f"    type: acme.ledger\n    from: scored\n    options: {{file: '{ledger}'}}\n"
            text = f"{text}  ledger:\n{about}"
        elif name == "custom_source":
            text = text.replace("table: orders", "table: random_orders")
        folder.joinpath(f"{name}.yaml").write_text(text)


def test_each_row_is_there_once(
    broker, registry, postgres, topics, packages, tmp_path, unique, capsys
):
    partner = Partner(postgres, f"{unique}.orders")
    folder, ledger = tmp_path / "files", tmp_path / "ledger.db"
    with running_receiver() as receiver:
        receiver.answer = partner
        config = Config.model_validate(
            {
                "kafka": {"brokers": broker.bootstrap, "schemaRegistry": registry.url},
                "state": {"rocksdb": {"path": str(tmp_path / "state")}},
                "spark": {"master": "local[2]"},
                "max_records": BATCH,
                "postgres": {"connections": {"postgres_sink": {"url": postgres.url}}},
                "vars": {"streamling.plugin.path": str(EXAMPLE_PLUGINS)},
                "plugins": {
                    "acme_api.orders_source": {"settings": {"url": f"{receiver.url}/orders"}}
                },
            }
        )
        files(folder, receiver.url, ledger, unique)
        for point, batch in KILLS:
            killed_at(point, batch, folder / "hero.yaml", config, packages=packages)
        large = config.model_copy(update={"max_records": 5_000})
        printed = ran(folder, large, packages=packages)
    check_hero(partner, postgres, ledger, unique)
    check_others(postgres, printed, unique)


def check_hero(partner, postgres, ledger, unique):
    """The table is right, and so is what the plugins have heard."""
    with psycopg.connect(postgres.url) as connection:
        asked = f"SELECT id, amount, risk_score FROM {unique}.orders ORDER BY id"
        rows = connection.execute(asked).fetchall()
    recent = [n for n in range(1, ORDERS + 1) if n % OLD]
    assert [number for number, _, _ in rows] == recent
    for number, amount, risk in rows:
        assert amount in partner.said[number]
        assert risk == ("high" if amount > 1000 else "low")
    with sqlite3.connect(ledger) as file:
        kept = [json.loads(row) for (row,) in file.execute("SELECT row FROM rows")]
        ((ready, done),) = file.execute("SELECT ready, done FROM epochs").fetchall()
    assert sorted((each["id"], each["amount"], each["risk_score"]) for each in kept) == rows
    assert ready == done > len(KILLS)
    epochs = [epoch for epoch, _ in partner.done]
    assert epochs
    assert epochs == sorted(epochs)
    for epoch, written in partner.done:
        assert written >= {n for n in recent if n <= epoch * PIECE}


def check_others(postgres, printed, unique):
    """The other examples have done what they say."""
    with psycopg.connect(postgres.url) as connection:
        made = connection.execute(
            f"SELECT alphanumeric_field, num_field FROM {unique}.random_orders"
        ).fetchall()
        events = connection.execute(f"SELECT id, v FROM {unique}.events ORDER BY id").fetchall()
    gone = {n for n in range(10_000) if n % 1000 == 999}
    rows = [row_of(n) for n in range(10_000) if n not in gone]
    wanted = {(r["alphanumeric_field"], r["num_field"]) for r in rows if int(r["num_field"]) > 100}
    assert set(made) == wanted
    assert len(made) == len(wanted)
    assert events == [(1, "c"), (2, "c"), (3, "r")]
    lines = [line.split(" | ") for line in printed.splitlines() if " | " in line]
    plugins = [line for line in lines if line[0] != "num_field" and len(line[1]) == 8]
    assert plugins == [
        [str(row["num_field"]), str(row["alphanumeric_field"]), "i"]
        for row in map(row_of, range(48))
    ]
    left = {}
    for number, value, operation in (line for line in lines if line[0].isdecimal()):
        if len(value) != 8:
            left[number] = None if operation == "d" else value
    assert left == {"1": "u", "2": None, "3": "r"}
