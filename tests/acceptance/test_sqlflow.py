"""The tutorial of SQLFlow and its neighbours, with Kafka, Postgres and Spark: byte for byte."""
# pyright: basic

import json
from pathlib import Path

import psycopg
import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from tests.committed import read_committed

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

TUTORIAL = Path(__file__).parents[1] / "fixtures" / "sqlflow" / "kafka.postgres.join.yml"
USERS = """
CREATE TABLE {table} (
  user_id integer PRIMARY KEY, first_name varchar(50), last_name varchar(50), age integer,
  email varchar(100), last_login timestamp, is_active boolean, country varchar(50),
  preferred_language varchar(10), subscription_level varchar(20), marketing_opt_in boolean)
"""
ALICE = (
    "(1, 'Alice', 'Smith', 30, 'alice.smith@example.com', '2025-01-15 10:15:00', true, 'USA', "
    "'en', 'premium', true)"
)
MESSAGES = [
    '{"action": "button_click", "timestamp": "2025-01-18T12:34:56Z", "user_id": 1}',
    '{"action": "page_view", "timestamp": "2025-01-18T12:34:57Z", "user_id": 999}',
]
NULLS = (
    '"user_id": null, "first_name": null, "last_name": null, "age": null, "email": null, '
    '"last_login": null, "is_active": null, "country": null, "preferred_language": null, '
    '"subscription_level": null, "marketing_opt_in": null'
)
LINES = [
    '{"action": "button_click", "timestamp": "2025-01-18T12:34:56Z", "user": {"user_id": 1, '
    '"first_name": "Alice", "last_name": "Smith", "age": 30, "email": "alice.smith@example.com", '
    '"last_login": "2025-01-15 10:15:00", "is_active": true, "country": "USA", '
    '"preferred_language": "en", "subscription_level": "premium", "marketing_opt_in": true}}',
    f'{{"action": "page_view", "timestamp": "2025-01-18T12:34:57Z", "user": {{{NULLS}}}}}',
]
AGGREGATE = """
pipeline:
  name: {unique}-counts
  batch_size: 100
  flush_interval_seconds: 600
  on_error:
    policy: DLQ
    dlq: {{type: kafka, kafka: {{brokers: [{brokers}], topic: {unique}-refused}}}}
  source:
    type: kafka
    kafka: {{brokers: [{brokers}], group_id: test, topics: [{unique}-events]}}
  handler:
    type: handlers.InferredMemBatch
    sql: |
      SELECT properties.city AS city, count(*) AS n, sum(amount::INTEGER) AS amount
      FROM batch GROUP BY city ORDER BY city
  sink:
    type: kafka
    kafka: {{brokers: [{brokers}], topic: {unique}-counts}}
"""
TABLE = """
pipeline:
  name: {unique}-table
  batch_size: 300
  on_error: {{policy: IGNORE}}
  source:
    type: kafka
    kafka: {{brokers: [{brokers}], group_id: test, topics: [{unique}-events]}}
  handler:
    type: handlers.InferredDiskBatch
    sql: SELECT properties.city AS city, count(*) AS n FROM batch GROUP BY ALL
  sink:
    type: postgres
    postgres: {{dsn: '{postgres}', table: {unique}_cities, mode: upsert, key: [city]}}
"""


def produce(broker, topic, values):
    producer = open_producer(broker.settings).api
    for value in values:
        producer.produce(topic, value.encode())
    producer.flush()


def test_the_tutorial_prints_what_it_documents(broker, postgres, spark, tmp_path, unique, capsys):
    from kaflow_engine.runtime.application import run_pipelines

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(USERS.format(table=f"{unique}_users"))
        connection.execute(f"CREATE TABLE {unique}_cities (city text PRIMARY KEY, n bigint)")
        connection.execute(f"INSERT INTO {unique}_users VALUES {ALICE}")
    text = TUTORIAL.read_text()
    for old, new in (
        ("input-user-clicks-demo", f"{unique}-clicks"),
        ("pgusersdb.users ON", f"pgusersdb.{unique}_users AS users ON"),
        ("name: kafka-postgres-join", f"name: {unique}"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "console.yml").write_text(text)
    kafka = f"type: kafka\n    kafka: {{brokers: ['{broker.bootstrap}'], topic: {unique}-out}}\n"
    again = text.replace("type: console", kafka).replace(f"name: {unique}", f"name: {unique}-kafka")
    (tmp_path / "kafka.yml").write_text(again)
    (tmp_path / "counts.yml").write_text(AGGREGATE.format(unique=unique, brokers=broker.bootstrap))
    (tmp_path / "table.yml").write_text(
        TABLE.format(unique=unique, brokers=broker.bootstrap, postgres=postgres.url)
    )
    config = Config.model_validate(
        {
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "sql": {"attach": ["postgres"]},
        }
    )
    environment = {
        "SQLFLOW_KAFKA_BROKERS": broker.bootstrap,
        "SQLFLOW_POSTGRES_USERS_URI": postgres.url,
    }
    specs = load_checked([tmp_path], config, environment).pipelines
    config = with_brought(config, specs)
    broker.create_topic(f"{unique}-events")
    cities = [{"properties": {"city": f"c{n % 5}"}, "amount": str(n % 3)} for n in range(299)]
    events = [json.dumps(each) for each in cities]
    events[7:7] = ["{!invalidJSON!", json.dumps({"properties": {"city": "c0"}, "amount": "x"})]
    produce(broker, f"{unique}-events", events)
    said = []

    def say(line):
        said.append(line)
        if line.startswith("waiting for topic"):
            broker.create_topic(f"{unique}-clicks")
        if line.startswith("waiting for a first record"):
            produce(broker, f"{unique}-clicks", MESSAGES)

    plans = prepare(specs, config, say)
    capsys.readouterr()
    summary = run_pipelines(
        [planned.plan for planned in plans], config, until_caught_up=True, spark=spark
    )
    assert {each.ending for each in summary.pipelines.values()} == {"caught up"}
    assert [line for line in capsys.readouterr().out.splitlines() if line[:1] == "{"] == LINES
    out = read_committed(broker.settings, f"{unique}-out").to_pylist()
    assert [row["value"].decode() for row in out] == LINES
    assert f"waiting for topic '{unique}-clicks', which does not exist yet" in said
    counts = read_committed(broker.settings, f"{unique}-counts").to_pylist()
    rows = [json.loads(row["value"]) for row in counts]
    assert [row["city"] for row in rows] == [f"c{n}" for n in range(5)] * 3
    assert sum(row["n"] for row in rows) == 299
    letters = read_committed(broker.settings, f"{unique}-refused").to_pylist()
    assert [row["value"].decode() for row in letters] == [events[7], events[8]]
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        found = connection.execute(f"SELECT city, n FROM {unique}_cities ORDER BY city").fetchall()
    assert found == [("c0", 61), *((f"c{n}", 60) for n in range(1, 4)), ("c4", 59)]
