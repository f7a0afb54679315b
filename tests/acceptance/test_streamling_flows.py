"""The four data flows and the four connector shortcuts that Streamling names, each from a file of
its own in `fixtures/streamling/flows`, run by one command."""
# pyright: basic

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.config import Config
from tests.acceptance.kafka_cases import new_topic
from tests.acceptance.run_child import ran
from tests.acceptance.test_streamling import FIXTURES
from tests.conftest import EXAMPLE_PLUGINS
from tests.plugins.basic_plugin import row_of
from tests.receiver import Answer, running_receiver

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

FLOWS = sorted((FIXTURES / "flows").iterdir())
POLLED = [(n, 400.0 * n, timedelta(hours=2 if n == 2 else 0)) for n in range(1, 6)]
"""Orders of the API: the second is an old one."""
PAYMENTS = [
    *(("c", {"id": 1, "status": "open"}), ("c", {"id": 2, "status": "paid"})),
    *(("u", {"id": 1, "status": "paid"}), ("d", {"id": 2, "status": "paid"})),
]
ORDERS = [
    *(("c", {"id": 19, "amount": 1900.0}), ("c", {"id": 20, "amount": 50.0})),
    *(("c", {"id": 21, "amount": 210.0}), ("u", {"id": 20, "amount": 2000.0})),
    *(("u", {"id": 21, "amount": 1.0}), ("d", {"id": 12, "amount": 120.0})),
    *(("u", {"id": 13, "amount": 6000.0}), ("c", {"id": 22, "amount": 7000.0})),
]
OPTIONS = "streamling.plugin.side_output_options.basic_plugin.count"
SEEN = {
    "api_orders": {"i": 5},
    "archive": {"i": 15},
    "orders": {"i": 15 + 5 + 15 + 3 * 4 + 3, "u": 3 * 3 + 2, "d": 3 + 2},
    "payments": {"i": 2, "u": 1, "d": 1},
    "polled": {"i": 24, "u": 3, "d": 3},
}
"""What a side output saw of sources; four files have one of the name `orders`."""
OLDEST, OLDER = range(15), range(15, 20)
"""Orders that tables have, whose amounts are ten times their numbers."""
OLD = {n: 10.0 * n for n in OLDEST}
LARGE = [(13, 6000.0), (19, 1900.0), (20, 2000.0), (22, 7000.0)]
TABLES = {
    "scored": [
        (n, amount, "NL", "high" if amount > 1000 else "low")
        for n, amount, age in POLLED
        if not age
    ],
    "from_all": sorted(
        [
            *((n, 10.0 * n) for n in (*OLDEST, *OLDER) if n not in (12, 13, 19)),
            *((13, 6000.0), (19, 1900.0), (20, 2000.0), (21, 1.0), (22, 7000.0)),
        ]
    ),
    "large": [(n, amount, amount * 2) for n, amount in LARGE],
    "copied": sorted(OLD.items()),
    "sized": [
        *((n, OLD[n], "large") for n in (10, 11, 14)),
        *((19, 1900.0, "huge"), (20, 2000.0, "huge")),
    ],
}


def answered(request):
    """Answer as the API of orders, as a service that enriches them, and take notices."""
    url = urlsplit(request.path)
    match url.path:
        case "/orders":
            after = int(parse_qs(url.query)["after"][0])
            now = datetime.now(UTC)
            rows = [
                {"id": n, "amount": amount, "created_at": (now - age).isoformat()}
                for n, amount, age in POLLED
                if n > after
            ]
            return Answer(200, json.dumps(rows))
        case "/enrich":
            return Answer(200, json.dumps([{"country": "NL"} for _ in json.loads(request.body)]))
        case _:
            return Answer(200)


@pytest.fixture
def filled(broker, clickhouse, unique):
    """Fill the topics and tables that the files read."""
    producer = open_producer(broker.settings).api
    for topic, changes in (("orders", ORDERS), ("payments", PAYMENTS)):
        new_topic(broker.settings, f"{unique}.{topic}", 1)
        for op, row in changes:
            headers = [("dbz.op", op.encode())]
            key = str(row["id"])
            producer.produce(f"{unique}.{topic}", json.dumps(row), key, headers=headers)
    assert producer.flush(30) == 0
    for name, numbers in (("oldest", OLDEST), ("older", OLDER)):
        table = f"{unique}_{name}"
        columns = "id Int64, amount Float64"
        clickhouse.ask(f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY id")
        values = ", ".join(f"({n}, {10.0 * n})" for n in numbers)
        clickhouse.ask(f"INSERT INTO {table} VALUES {values}")


@pytest.mark.usefixtures("filled")
def test_each_flow_runs(broker, postgres, clickhouse, tmp_path, unique):
    folder = tmp_path / "files"
    folder.mkdir()
    (tmp_path / "seen").mkdir()
    with running_receiver() as receiver:
        receiver.answer = answered
        config = Config.model_validate(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(tmp_path / "state")}},
                "spark": {"master": "local[2]"},
                "postgres": {"connections": {"postgres_sink": {"url": postgres.url}}},
                "clickhouse": {"connections": {"clickhouse_source": clickhouse.connection}},
                "vars": {
                    "streamling.plugin.path": str(EXAMPLE_PLUGINS),
                    "streamling.plugin.side_output_ids": "basic_plugin.count",
                    f"{OPTIONS}.folder": str(tmp_path / "seen"),
                },
                "plugins": {
                    "acme_api.orders_source": {"settings": {"url": f"{receiver.url}/orders"}}
                },
            }
        )
        for file in FLOWS:
            text = file.read_text("utf-8").replace("http://localhost:8087", receiver.url)
            folder.joinpath(file.name).write_text(text.replace("flows", unique))
        printed = ran(folder, config)
        requests = [r for r in receiver.requests if r.path == "/notify"]
    with psycopg.connect(postgres.url) as connection:
        for table, rows in TABLES.items():
            columns = "id, amount, country, risk_score" if table == "scored" else "*"
            asked = f"SELECT {columns} FROM {unique}.{table} ORDER BY id"
            assert connection.execute(asked).fetchall() == rows, table
    rows = [json.loads(line) for line in printed.splitlines() if line[:1] == "{"]
    assert rows == [{**row_of(n), "_gs_op": "u"} for n in (8, 18, 28)]
    pushed = [json.loads(request.body) for request in requests]
    letters = {"c": "i"}
    assert pushed == [
        {"metadata": {"op": letters.get(op, op)}, "data": {**row, "name": f"order {row['id']}"}}
        for op, row in ORDERS
    ]
    assert {request.headers["X-Team"] for request in requests} == {"orders"}
    published = read_all(broker.settings, f"{unique}.paid").to_pylist()
    sent = Counter(
        ({h["key"]: h["value"] for h in each["headers"]}["dbz.op"], each["value"].decode())
        for each in published
    )
    assert sent == Counter(
        (op.encode(), json.dumps(row, separators=(",", ":")))
        for op, row in PAYMENTS
        if row["status"] == "paid"
    )
    seen = {name: Counter() for name in SEEN}
    for file in (tmp_path / "seen").iterdir():
        seen[file.name.partition(".")[0]].update(json.loads(file.read_text()))
    assert seen == SEEN
