"""Configurations of SQLFlow, one for each kind of example, run by one command from end to end:
files of `fixtures/sqlflow/examples` (ST9, ST10, ST25, ST26). Most batches for ClickHouse have no
rows, and statements of a sink run in a database of their own (D11, D16)."""
# pyright: basic

import json
import sqlite3
from collections import Counter
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog

from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.bucket_here import KEYS, Store
from tests.acceptance.test_sqlflow import produce
from tests.committed import read_committed

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

EXAMPLES = sorted((Path(__file__).parents[1] / "fixtures" / "sqlflow" / "examples").iterdir())
CITIES = ("New York", "Baltimore")
EVENTS = [
    {
        "event": "search",
        "properties": {"city": CITIES[n % 2]},
        "amount": n,
        "ts": f"2025-01-18T{n // 10:02}:{n % 10 * 5:02}:00Z",
    }
    for n in range(40)
]
BROKEN = ['{"id": "1"}', "{!invalidJSON!", '{"id": "2"}']
MORE = [{**EVENTS[0], "amount": -n} for n in range(3)]
SHOUTING = """
from kaflow_engine.api.functions import function


@function
def shout(text: str) -> str:
    return text.upper()
"""
STATES = [("New York", "New York"), ("Baltimore", "Maryland")]
BY_STATE = [{"city": city, "state": dict(STATES)[city]} for city in CITIES]
BY_COUNT = [{"state": "Maryland", "n": 20}, {"state": "New York", "n": 20}]
COUNTS = {city: 20 for city in CITIES}


def by_city(name, key, count="n"):
    return [{name: each, count: 20} for each in sorted(COUNTS, reverse=key)]


ROWS = {
    "agg.mem": by_city("city", True, "city_count"),
    "agg.structured": by_city("city", False),
    "agg.disk": [{"city": c, "city_count": 10} for c in sorted(CITIES)] * 2,
    "enrich": [
        {
            "event": "search",
            "properties": each["properties"],
            "nested_city": {"something": each["properties"]["city"]},
            "extra": "extra",
        }
        for each in EVENTS
    ],
    "udf": [{"city": each["properties"]["city"].upper()} for each in EVENTS],
    "dialect": [
        {
            "hour": each["ts"][:13],
            "day": "2025-01-18",
            "seen": "2023-11-14 22:13:20.123456",
            "city": each["properties"]["city"],
            "again": each["properties"]["city"],
            "amount": each["amount"] or -1,
        }
        for each in EVENTS
    ],
    "keyed": [{"city": each["properties"]["city"], "amount": each["amount"]} for each in EVENTS],
    "best": [
        {"amount": n + last, "running": sum(range(n, n + last + 1))}
        for n in range(0, 40, 10)
        for last in (8, 9)
    ],
    "union": [{"what": "large", "n": 29}, {"what": "all", "n": 40}],
    "window": [
        {"bucket": f"2025-01-18T{hour:02}:00:00", "city": city, "count": 5}
        for hour in range(3)  # the last one is open
        for city in sorted(CITIES)
    ],
    "ignore": [{"id": "1"}, {"id": "2"}],
    "dlq": [{"id": 1}, {"id": 2}],
    "security": [{"n": 40}],
    "join.sqlite": BY_STATE * 20,
    "join.duckdb": BY_STATE * 20,
    "groups.duckdb": BY_COUNT,
    "csv.join": BY_STATE * 20,
    "csv.table": BY_COUNT,
    "topics": [{"more": True, "kafka_partition": 0, "kafka_offset": n} for n in range(3)]
    + [{"more": False, "kafka_partition": 0, "kafka_offset": n} for n in range(40)],
}
"""What stands in a topic, by example."""
ELSEWHERE = {
    *("clickhouse", "console", "iceberg", "idempotent", "noop"),
    *("parquet", "parquet.bucket", "postgres.append", "postgres.upsert"),
}


def fill(folder, postgres, clickhouse, broker, unique):
    """Make all that the files read, and write to."""
    (folder / "shouting.py").write_text(SHOUTING)
    with sqlite3.connect(folder / "states.db") as states:
        states.execute("CREATE TABLE states (city TEXT, state TEXT)")
        states.executemany("INSERT INTO states VALUES (?, ?)", STATES)
    states.close()
    with duckdb.connect(str(folder / "states.duckdb")) as states:
        states.execute("CREATE TABLE states (city VARCHAR, state VARCHAR)")
        states.executemany("INSERT INTO states VALUES (?, ?)", STATES)
    (folder / "states.csv").write_text("city,state\n" + "".join(f"{c},{s}\n" for c, s in STATES))
    (folder / "out").mkdir()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        for text in (
            f"CREATE TABLE {unique}_events (event text, city text, amount bigint)",
            f"CREATE TABLE {unique}_cities (city text PRIMARY KEY, n bigint)",
            f"CREATE TABLE {unique}_places (place text PRIMARY KEY, last bigint, n bigint)",
        ):
            connection.execute(text)
    clickhouse.ask(
        f"CREATE TABLE {unique}_large (amount Int64, city String) ENGINE = MergeTree "
        "ORDER BY amount SETTINGS non_replicated_deduplication_window = 1000"
    )
    for topic, values in (
        ("events", [json.dumps(each) for each in EVENTS]),
        ("more", [json.dumps(each) for each in MORE]),
        ("broken", BROKEN),
    ):
        broker.create_topic(f"{unique}-{topic}")
        produce(broker, f"{unique}-{topic}", values)


def dsn_of(clickhouse):
    said = clickhouse.connection
    place = said["url"].removeprefix("http://")
    return f"clickhouse://{said['user']}:{quote(said['password'], safe='')}@{place}"


@pytest.fixture
def lake(tmp_path, unique):
    """A catalog with the table of the example."""
    settings = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"{tmp_path}/lake"}
    catalog = load_catalog("lake", type="sql", **settings)
    catalog.create_namespace("shop")
    schema = pa.schema([("city", pa.string()), ("ts", pa.timestamp("us"))])
    catalog.create_table(f"shop.{unique}", schema)
    return settings, lambda: catalog.load_table(f"shop.{unique}").scan().to_arrow()


@pytest.fixture
def store():
    with Store() as found:
        yield found


def test_each_example_does_what_it_says(
    broker, postgres, clickhouse, lake, store, spark, tmp_path, unique, capsys, monkeypatch
):
    from kaflow_engine.runtime.application import run_pipelines

    monkeypatch.chdir(tmp_path)
    fill(tmp_path, postgres, clickhouse, broker, unique)
    for file in EXAMPLES:
        (tmp_path / file.name).write_text(file.read_text())
    config = Config.model_validate(
        {
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "functions": ["./shouting.py"],
            "sql": {"attach": ["sqlite", "duckdb"], "read": [str(tmp_path)]},
            "command": {"connections": {"default": {"folders": [str(tmp_path / "out")]}}},
            "iceberg": {"connections": {"lake": lake[0]}},
        }
    )
    environment = {
        "SQLFLOW_KAFKA_BROKERS": broker.bootstrap,
        "SQLFLOW_UNIQUE": unique,
        "SQLFLOW_POSTGRES": postgres.url,
        "SQLFLOW_CLICKHOUSE": dsn_of(clickhouse),
        "SQLFLOW_FOLDER": str(tmp_path / "out"),
        "SQLFLOW_S3_ENDPOINT": store.endpoint.removeprefix("http://"),
        "SQLFLOW_S3_ACCESS_KEY_ID": KEYS["access_key"],
        "SQLFLOW_S3_SECRET_ACCESS_KEY": KEYS["secret_key"],
    }
    specs = load_checked([tmp_path / file.name for file in EXAMPLES], config, environment).pipelines
    assert {spec.name.removeprefix(f"{unique}-") for spec in specs} == {*ROWS, *ELSEWHERE}
    config = with_brought(config, specs)
    plans = [planned.plan for planned in prepare(specs, config)]
    capsys.readouterr()
    summary = run_pipelines(plans, config, until_caught_up=True, spark=spark)
    assert {each.ending for each in summary.pipelines.values()} == {"caught up"}
    printed = [line for line in capsys.readouterr().out.splitlines() if line[:1] == "{"]
    assert printed == ['{"greeting": "hello"}'] * 3

    def topic(name):
        return read_committed(broker.settings, f"{unique}-{name}").to_pylist()

    def ask(text):
        with psycopg.connect(postgres.url) as connection:
            return connection.execute(text.format(unique)).fetchall()

    for name, wanted in ROWS.items():
        found = [json.loads(row["value"]) for row in topic(name)]
        if name == "topics":
            assert Counter(map(str, found)) == Counter(map(str, wanted)), name
        else:
            assert found == wanted, name
    assert {row["key"].decode() for row in topic("keyed")} == {*CITIES}
    assert [row["value"].decode() for row in topic("refused")] == BROKEN[1:2]
    assert len(ask("SELECT * FROM {}_events")) == 40
    assert sorted(ask("SELECT city, n FROM {}_cities")) == sorted(COUNTS.items())
    assert ask("SELECT place, last, n FROM {}_places") == [(f"{unique}-events:0", 39, 40)]
    assert clickhouse.ask(f"SELECT amount, city FROM {unique}_large") == [(39, "Baltimore")]
    files = [*(tmp_path / "out").glob("*.parquet")]
    numbers = duckdb.execute(f"SELECT num_records FROM '{files[0]}'").fetchall()
    assert (len(files), numbers) == (1, [(40,)])
    bucket = store.bucket(unique)
    objects = [name for name in bucket.sizes("") if name.endswith(".parquet")]
    assert bucket.staged() == []
    rows = [
        (row["city"], row["num_records"])
        for name in objects
        for row in pq.read_table(BytesIO(bucket.get(name)[0])).to_pylist()
    ]
    assert Counter(rows) == {(city, 5): 4 for city in CITIES}  # of each of four batches
    rows = lake[1]().to_pylist()
    assert Counter(row["city"] for row in rows) == COUNTS
    assert {row["ts"].isoformat() for row in rows} == {each["ts"][:-1] for each in EVENTS}
