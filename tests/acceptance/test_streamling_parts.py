"""Parts of the documents of Streamling on Spark, put together to files: those that
`test_streamling.py` has not, which has all that fit one topic of accounts."""
# pyright: basic

import json

import psycopg
import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kafka_cases import new_topic
from tests.acceptance.test_streamling import PARTS, avro, registered

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

EVENTS = [
    ("c", 1, "open", 5.0),
    ("c", 2, "open", -1.0),
    ("u", 1, "paid", 7.0),
    ("u", 2, "paid", 3.0),
    ("d", 1, "paid", 7.0),
]
CHANGES = {
    "in.transfers": [
        ("c", {"transfer_id": 1, "account": "a", "amount": 10.0}),
        ("c", {"transfer_id": 2, "account": "a", "amount": 5.0}),
        ("c", {"transfer_id": 3, "account": "b", "amount": 1.0}),
        ("u", {"transfer_id": 2, "account": "a", "amount": 7.0}),
        ("d", {"transfer_id": 3, "account": "b", "amount": 1.0}),
    ],
    "in.trades": [
        ("c", {"trade_id": 1, "market": "m", "volume": 2.0, "price": 10.0}),
        ("c", {"trade_id": 2, "market": "m", "volume": 3.0, "price": 25.0}),
        ("u", {"trade_id": 2, "market": "m", "volume": 3.5, "price": 20.0}),
    ],
    "in.events": [("c", {"event_id": n}) for n in (1, 2, 3)] + [("d", {"event_id": 2})],
    "in.crm.accounts": [
        ("c", {"customer_id": "ann", "tier": "vip"}),
        ("c", {"customer_id": "bob", "tier": "basic"}),
    ],
    "in.orders.events": [
        ("c", {"id": n, "customer_id": name, "amount": n / 2, "created_at": "2026-01-01T00:00:00"})
        for n, name in ((1, "ann"), (2, "bob"), (3, "ann"))
    ],
}
"""In the order of their times: accounts are there when orders ask."""


@pytest.fixture
def topics(broker, registry):
    """Fill the topics."""
    producer = open_producer(broker.settings).api
    fields = (("id", "long"), ("event_type", "string"), ("amount", "double"))
    new_topic(broker.settings, "app.events", 1)
    schema = registered(registry, "app.events", *fields)
    for op, *values in EVENTS:
        headers = [("dbz.op", op.encode())]
        producer.produce("app.events", avro(schema, *values), str(values[0]), headers=headers)
    time = 1_767_225_600_000
    for topic, found in CHANGES.items():
        new_topic(broker.settings, topic, 1)
        for op, row in found:
            time += 1
            producer.produce(
                topic,
                json.dumps(row),
                str(next(iter(row.values()))),
                timestamp=time,
                headers=[("dbz.op", op.encode())],
            )
    assert producer.flush(30) == 0


def part(title, unique):
    """Return a part below its section, with the schema of the test."""
    text = PARTS[title]["part"].partition("\n")[2]
    for schema in ("finance", "trading", "analytics"):
        text = text.replace(f"schema: {schema}", f"schema: {unique}")
    return text.replace("orders_archive", f"{unique}_archive")


def sources(*titles):
    """Return the sources that stand around parts."""
    lines = [line for title in titles for line in PARTS[title]["rest"].splitlines()]
    return "".join(f"{line}\n" for line in lines if "type: kafka" in line)


def written(unique):
    """Return the files by name."""
    stored = "  {0}: {{type: postgres, from: {0}, schema: {1}, table: {0}}}\n"
    aggregates = ("aggregates", "several aggregates", "a global aggregate")
    tables = (
        "dynamic tables",
        "a dynamic table in memory",
        "a dynamic table in Postgres",
        "a lookup filter",
    )
    known = (
        "  known_orders:\n    type: sql\n    primary_key: id\n    sql: SELECT id, customer_id FROM "
        "orders.events WHERE dynamic_table_check('persistent_table', customer_id)\n"
    )
    return {
        "events": f"sources:\n{part('labels', unique)}transforms:\n{part('sql transform', unique)}"
        f"sinks:\n{part('print sink', unique)}{part('blackhole sink', unique)}",
        "groups": f"sources:\n{sources(*aggregates)}sinks:\n"
        + "".join(part(title, unique) for title in aggregates),
        "tables": f"sources:\n{sources('a lookup filter')}transforms:\n"
        + "".join(part(title, unique) for title in tables)
        + f"{known}sinks:\n"
        + "".join(stored.format(name, unique) for name in ("vip_orders", "known_orders")),
        "archived": f"sources:\n{part('hybrid source', unique)}sinks:\n"
        + stored.format("orders", unique),
    }


def test_parts_run(broker, registry, postgres, clickhouse, spark, topics, tmp_path, unique, capfd):
    from kaflow_engine.runtime.application import run_pipelines

    clickhouse.ask(
        f"CREATE TABLE {unique}_archive (id Int64, amount Float64) ENGINE = MergeTree ORDER BY id"
    )
    clickhouse.ask(f"INSERT INTO {unique}_archive SELECT number, number / 2 FROM numbers(30)")
    with psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS streamling")
        connection.execute("DROP TABLE IF EXISTS streamling.persistent_data")
        connection.execute("CREATE TABLE streamling.persistent_data (value TEXT PRIMARY KEY)")
        connection.execute("INSERT INTO streamling.persistent_data VALUES ('bob')")
        connection.execute(f"CREATE SCHEMA {unique}")
        balances = f"{unique}.account_balances"  # as an earlier program left them
        connection.execute(f"CREATE TABLE {balances} (account TEXT PRIMARY KEY, balance FLOAT8)")
        connection.execute(f"INSERT INTO {balances} VALUES ('a', 100), ('z', 7)")
    config = Config.model_validate(
        {
            "kafka": {"brokers": broker.bootstrap, "schemaRegistry": registry.url},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "postgres": {"connections": {"postgres_sink": {"url": postgres.url}}},
            "clickhouse": {"connections": {"clickhouse_source": clickhouse.connection}},
        }
    )
    plans = []
    for name, text in written(unique).items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        settings = {"streamling.job_mode": "true"} if name == "archived" else {}
        own = config.model_copy(update={"vars": settings})
        plans += [each.plan for each in prepare(load_checked([path], own, {}).pipelines, own)]
    capfd.readouterr()
    summary = run_pipelines(plans, config, until_caught_up=True, spark=spark)
    assert {each.ending for each in summary.pipelines.values()} == {"caught up"}

    lines = [json.loads(t) for t in capfd.readouterr().out.splitlines() if t[:1] == "{"]
    assert [(each["op"], each["key"]) for each in lines] == [
        ("upsert", "1"),
        ("upsert", "1"),
        ("upsert", "2"),
        ("delete", "1"),
    ]
    with psycopg.connect(postgres.url) as connection:
        for table, rows in {
            "account_balances": [("a", 117.0), ("z", 7.0)],
            "market_stats": [("m", 2, 5.5, 30.0, 2)],
            "global_totals": [("all", 2)],
            "vip_orders": [(1, "ann"), (3, "ann")],
            "known_orders": [(2, "bob")],
            "orders": [(n, n / 2) for n in range(30)],
        }.items():
            found = connection.execute(f"SELECT * FROM {unique}.{table} ORDER BY 1").fetchall()
            assert [row[: len(rows[0])] for row in found] == rows, table
