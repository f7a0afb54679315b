"""Files of Streamling on Spark, Kafka, a registry, Postgres, ClickHouse's engine, HTTP servers.

The examples are those of its documents, word by word but for addresses.
"""
# pyright: basic

import json
import struct
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.telemetry.metrics.metrics import Metrics
from tests.acceptance.kafka_cases import new_topic
from tests.receiver import Answer, running_receiver

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "streamling"
PARTS = {row["title"]: row for row in yaml.safe_load((FIXTURES / "parts.yaml").read_text("utf-8"))}
TRANSACTIONS = [
    ("c", 1, 1500.0),
    ("c", 2, 10.0),
    ("u", 2, 3000.0),
    ("u", 1, 50.0),
    ("r", 3, 4000.0),
    ("c", 4, 9000.0),
    ("d", 4, 9000.0),
    (None, 5, 1001.0),
    ("tombstone", 5, None),
]
ROWS_OUT = {
    ("both", "orders"): 305,
    ("both", "stored"): 304,
    ("accounts", "raw_accounts"): 6,
    ("accounts", "enriched_accounts"): 6,
    ("quick_start", "raw_transactions"): 9,
    ("quick_start", "print_large"): 8,
    ("archive", "ch_output"): 300,
}
"""Rows that left a node of a pipeline; a sink upserts those of a batch once for each key."""
VISITS = [(1, "ann"), (2, "ann"), (3, "bob"), (4, "ann"), (5, "bob")]


def avro(number, *values):
    """Encode a record of longs, doubles and strings."""
    found = b"\0" + number.to_bytes(4)
    for value in values:
        match value:
            case float():
                found += struct.pack("<d", value)
            case str():
                found += varint(len(value.encode())) + value.encode()
            case _:
                found += varint(value)
    return found


def varint(value):
    value = value * 2 if value >= 0 else -value * 2 - 1
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def registered(registry, topic, *fields):
    kinds = [{"name": name, "type": kind} for name, kind in fields]
    # tests share topics that have other fields in each; what was deleted does not come back
    schema = json.dumps({"type": "record", "name": f"R{uuid4().hex}", "fields": kinds})
    found = httpx.delete(f"{registry.url}/subjects/{topic}-value", timeout=30)
    assert found.status_code in (200, 404), found.text  # 404: there is none yet
    return Registry(url=registry.url).register(f"{topic}-value", schema, "AVRO")


@pytest.fixture
def topics(broker, registry):
    """Fill the topics that the examples name."""
    kafka = broker.settings
    names = ("raw.event.transaction", "app.accounts", "visits", "custom_topic")
    for topic in names[:3]:
        new_topic(kafka, topic, 1)
    producer = open_producer(kafka, **{"enable.idempotence": True}).api
    amounts = registered(registry, names[0], ("id", "long"), ("amount", "double"))
    for op, number, amount in TRANSACTIONS:
        gone = op == "tombstone"
        producer.produce(
            names[0],
            None if gone else avro(amounts, number, amount),
            str(number),
            headers=[] if gone or op is None else [("dbz.op", op.encode())],
        )
    accounts = registered(
        registry, names[1], ("id", "long"), ("amount", "double"), ("status", "string")
    )
    for op, number, amount in TRANSACTIONS[:6]:
        value = avro(accounts, number, amount, "new")
        producer.produce(names[1], value, str(number), headers=[("dbz.op", op.encode())])
    visits = registered(registry, names[2], ("event_id", "long"), ("user_id", "string"))
    for number, user in VISITS:
        producer.produce(names[2], avro(visits, number, user), str(number))
    assert producer.flush(30) == 0


def files(folder, url, unique):
    """Write the examples down: whole ones as they are, parts with the sections around them."""
    for name in ("quick_start", "overview"):
        text = (FIXTURES / "seed" / f"{name}.yaml").read_text("utf-8")
        (folder / f"{name}.yaml").write_text(text)
    parts = {title: row["part"] for title, row in PARTS.items()}
    below = {title: text.partition("\n")[2] for title, text in parts.items()}
    accounts = (
        "sources:\n  raw_accounts: {type: kafka, topic: app.accounts, primary_key: id}\n"
        + parts["handler transform"].replace("http://localhost:8087", url)
        + "    schema_override: {risk: VARCHAR}\n    payload_version: 1\n"
        + below["script transform"].replace("from: raw_accounts", "from: enriched_accounts")
        + parts["webhook sink"].replace("http://localhost:8087", url)
        + below["kafka sink"]
        + below["postgres sink"].replace("schema: eth", f"schema: {unique}")
        + "    from: updated_account\n"
    )
    (folder / "accounts.yaml").write_text(accounts)
    first = (
        "sources:\n  user.events: {type: kafka, topic: visits, primary_key: event_id}\n"
        + parts["deduplication"]
        + f"sinks:\n  first: {{type: postgres, from: filtered_events, schema: {unique}, "
        "table: first_events}\n"
    )
    (folder / "first.yaml").write_text(first)
    archive = parts["clickhouse source"].replace(
        "table_name: orders", f"table_name: {unique}_orders"
    ) + parts["clickhouse sink"].replace("from: filtered_events", "from: ch_orders").replace(
        "test_output", f"{unique}_output"
    )
    (folder / "archive.json").write_text(json.dumps(yaml.safe_load(archive)))
    both = (
        f"sources:\n  orders:\n    type: hybrid\n    primary_key: id\n"
        "    schema: {id: BIGINT, amount: DOUBLE}\n"
        f"    bounded_sources:\n      - source_type: clickhouse\n"
        f"        table_name: {unique}_orders\n        start_at: 1\n"
        "    unbounded_source:\n      source_type: kafka\n      topic: app.accounts\n"
        "      start_at: earliest\n      filter: amount < 9000 OR amount IS NULL\n"
        "    telemetry: {labels: {tier: critical}}\n"
        f"sinks:\n  stored: {{type: postgres, from: orders, schema: {unique}, table: both}}\n"
    )
    (folder / "both.yaml").write_text(both)


def answered(request):
    """Answer requests for risks, and take notices."""
    rows = json.loads(request.body)
    if request.path == "/notify":
        return Answer(200)
    found = ["high" if row["data"]["amount"] > 1000 else "low" for row in rows]
    return Answer(200, json.dumps([{"metadata": {}, "data": {"risk": each}} for each in found]))


def table(postgres, query):
    with psycopg.connect(postgres.url) as connection:
        return connection.execute(query).fetchall()


def test_examples_run(
    broker, registry, postgres, clickhouse, spark, topics, tmp_path, unique, capfd
):
    from kaflow_engine.runtime.application import run_pipelines

    clickhouse.ask(
        f"CREATE TABLE {unique}_orders (id Int64, amount Float64) ENGINE = MergeTree ORDER BY id"
    )
    clickhouse.ask(f"INSERT INTO {unique}_orders SELECT number, number / 2 FROM numbers(300)")
    connection = clickhouse.connection
    config = Config.model_validate(
        {
            "kafka": {"brokers": broker.bootstrap, "schemaRegistry": registry.url},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": 4,
            "postgres": {"connections": {"postgres_sink": {"url": postgres.url}}},
            "clickhouse": {
                "connections": {"clickhouse_sink": connection, "clickhouse_source": connection}
            },
        }
    )
    folder = tmp_path / "files"
    folder.mkdir()
    with running_receiver() as receiver:
        receiver.answer = answered
        files(folder, receiver.url, unique)
        project = load_checked([folder], config, {})
        planned = prepare(project.pipelines, config)
        capfd.readouterr()
        metrics = Metrics(files={each.name: each.file_metrics for each in project.pipelines})
        summary = run_pipelines(
            [each.plan for each in planned],
            config,
            until_caught_up=True,
            spark=spark,
            on_progress=metrics.take,
        )
        requests = [r for r in receiver.requests if r.path == "/notify"]
        bodies = [json.loads(r.body) for r in receiver.requests if r.path == "/enrich"]
    assert {name: s.ending for name, s in summary.pipelines.items()} == {
        name: "caught up"
        for name in ("accounts", "archive", "both", "first", "overview", "quick_start")
    }

    lines = [json.loads(t) for t in capfd.readouterr().out.splitlines() if t[:1] == "{"]
    assert [(each["op"], each["key"]) for each in lines] == [
        ("upsert", "1"),
        ("upsert", "2"),
        ("delete", "1"),
        ("upsert", "3"),
        ("upsert", "4"),
        ("delete", "4"),
        ("upsert", "5"),
        ("delete", "5"),
    ]
    found = table(postgres, "SELECT id, amount FROM public.large_transactions ORDER BY id")
    assert found == [(2, 3000.0), (3, 4000.0)]

    rows = table(postgres, f"SELECT id, tier, status, risk FROM {unique}.blocks ORDER BY id")
    assert rows == [
        (1, "standard", "new_processed", "low"),
        (2, "premium", "new_processed", "high"),
        (3, "premium", "new_processed", "high"),
        (4, "premium", "new_processed", "high"),
    ]
    told = [row for request in requests for row in json.loads(request.body)]
    assert [(row["id"], row["_gs_op"]) for row in told] == [
        *((1, "i"), (2, "i"), (2, "u"), (1, "u"), (3, "i"), (4, "i")),
    ]
    asked = [row for body in bodies for row in body]
    assert sorted((row["data"]["id"], row["metadata"]["op"]) for row in asked) == [
        *((1, "i"), (1, "u"), (2, "i"), (2, "u"), (3, "i"), (4, "i")),
    ]
    assert not any("_gs_op" in row["data"] for row in asked)
    records = read_all(broker.settings, "custom_topic").to_pylist()
    sent = {row["key"]: [] for row in records}
    for row in sorted(records, key=lambda row: row["offset"]):
        sent[row["key"]].append({h["key"]: h["value"] for h in row["headers"]}["dbz.op"])
    assert sent == {b"1": [b"c", b"u"], b"2": [b"c", b"u"], b"3": [b"c"], b"4": [b"c"]}
    assert len(Registry(url=registry.url).latest("custom_topic-value").schema) > 0

    firsts = table(postgres, f"SELECT event_id, user_id FROM {unique}.first_events ORDER BY 1")
    assert firsts == [(1, "ann"), (3, "bob")]

    both = table(postgres, f"SELECT id, amount FROM {unique}.both ORDER BY id")
    newer = {1: 50.0, 2: 3000.0, 3: 4000.0}  # Avro records behind the table that pass
    assert both == [(n, newer.get(n, n / 2)) for n in range(1, 300)]

    counted = {
        (sample.labels["pipeline"], sample.labels["id"]): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name == "streamling_output_rows_total"
    }
    assert {key: counted[key] for key in ROWS_OUT} == ROWS_OUT
    assert 'id="orders",language="",operator_type="hybrid"' in metrics.text().decode()
    copied = clickhouse.ask(f"SELECT count(), sum(amount) FROM {unique}_output FINAL")
    assert [[float(value) for value in row] for row in copied] == [[300, sum(range(300)) / 2]]
