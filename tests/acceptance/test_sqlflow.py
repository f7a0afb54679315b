"""The tutorial of SQLFlow and its neighbours, with two clusters of Kafka, Postgres and Spark."""
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
commands:
  - {{name: states, sql: CREATE TABLE states AS SELECT * FROM read_csv('states.csv')}}
pipeline:
  name: {unique}-table
  batch_size: 300
  on_error:
    policy: DLQ
    dlq: {{type: postgres, postgres: {{dsn: '{postgres}', table: {unique}_refused}}}}
  source:
    type: kafka
    kafka: {{brokers: [{brokers}], group_id: test, topics: [{unique}-events]}}
  handler:
    type: handlers.InferredDiskBatch
    sql: |
      SELECT state, properties.city AS city, count(*) AS n
      FROM batch JOIN states ON states.name = properties.city GROUP BY ALL
  sink:
    type: postgres
    postgres: {{dsn: '{postgres}', table: {unique}_cities, mode: upsert, key: [state, city]}}
"""
WINDOWS = """
tables:
  sql:
    - name: hours
      sql: CREATE TABLE hours (bucket TIMESTAMPTZ, n INT)
      window:
        time_column: bucket
        size_seconds: 3600
        emit_sql: SELECT strftime(bucket, '%H') AS hour, n FROM closed
        sink: {{type: kafka, kafka: {{brokers: ['{brokers}'], topic: {unique}-hours}}}}
    - name: cities
      sql: CREATE TABLE cities (bucket TIMESTAMPTZ, city VARCHAR, n INT)
      window:
        time_column: bucket
        size_seconds: 3600
        emit_sql: SELECT city, n FROM closed
        sink: {{type: kafka, kafka: {{brokers: ['{west}'], topic: {unique}-hours}}}}
pipeline:
  name: {unique}-windows
  on_error: {{policy: IGNORE}}
  source:
    type: kafka
    kafka: {{brokers: ['{brokers}'], group_id: test, topics: [{unique}-events]}}
  handler:
    type: handlers.InferredMemBatch
    sql: |
      INSERT INTO hours BY NAME
      SELECT date_trunc('hour', at::TIMESTAMPTZ) AS bucket, count(*) AS n
      FROM batch GROUP BY bucket;
      INSERT INTO cities BY NAME
      SELECT date_trunc('hour', at::TIMESTAMPTZ) AS bucket, properties.city AS city, count(*) AS n
      FROM batch GROUP BY bucket, city
  sink: {{type: noop}}
"""


def at(n):
    """Return the time of an event: of the first 150 that of one hour, of others the next one."""
    return f"2025-01-18T{10 + n // 150}:00:00Z"


def produce(broker, topic, values):
    producer = open_producer(broker.settings).api
    for value in values:
        producer.produce(topic, value.encode())
    producer.flush()


def test_the_tutorial_prints_what_it_documents(
    broker, crash_broker, postgres, spark, tmp_path, unique, capsys
):
    from kaflow_engine.runtime.application import run_pipelines

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(USERS.format(table=f"{unique}_users"))
        connection.execute(
            f"CREATE TABLE {unique}_cities (state text, city text, n bigint, UNIQUE (city, state))"
        )
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
    states = "".join(f"c{n},s{n % 2}\n" for n in range(5))
    (tmp_path / "states.csv").write_text(f"name,state\n{states}")
    west = crash_broker.bootstrap
    (tmp_path / "windows.yml").write_text(
        WINDOWS.format(unique=unique, brokers=broker.bootstrap, west=west)
    )
    config = Config.model_validate(
        {
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "sql": {"attach": ["postgres"], "read": [str(tmp_path)]},
        }
    )
    environment = {
        "SQLFLOW_KAFKA_BROKERS": broker.bootstrap,
        "SQLFLOW_POSTGRES_USERS_URI": postgres.url,
    }
    specs = load_checked([tmp_path], config, environment).pipelines
    config = with_brought(config, specs)
    broker.create_topic(f"{unique}-events")
    cities = [
        {"properties": {"city": f"c{n % 5}"}, "amount": str(n % 3), "at": at(n)} for n in range(299)
    ]
    events = [json.dumps(each) for each in cities]
    events[7:7] = ["{!invalidJSON!", json.dumps({**cities[0], "amount": "x"})]
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
    assert "executing command load extensions: INSTALL postgres; LOAD postgres;" in said
    (attached,) = {line for line in said if line.startswith("executing command attach usersdb:")}
    assert "AS pgusersdb (TYPE POSTGRES, READ_ONLY);" in attached
    assert said.index(attached) < said.index(f"{unique} waits for messages of {unique}-clicks")
    counts = read_committed(broker.settings, f"{unique}-counts").to_pylist()
    rows = [json.loads(row["value"]) for row in counts]
    assert [row["city"] for row in rows] == [f"c{n}" for n in range(5)] * 3
    assert sum(row["n"] for row in rows) == 299
    letters = read_committed(broker.settings, f"{unique}-refused").to_pylist()
    assert [row["value"].decode() for row in letters] == [events[7], events[8]]
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        found = connection.execute(f"SELECT * FROM {unique}_cities ORDER BY city").fetchall()
        refused = connection.execute(f"SELECT value FROM {unique}_refused").fetchall()
    amounts = (61, 60, 60, 60, 59)
    assert found == [(f"s{n % 2}", f"c{n}", count) for n, count in enumerate(amounts)]
    assert refused == [(events[7].encode(),)]
    hours = read_committed(broker.settings, f"{unique}-hours").to_pylist()
    assert hours[0]["value"].decode() == '{"hour": "10", "n": 151}'
    hours = read_committed(crash_broker.settings, f"{unique}-hours").to_pylist()
    rows = [json.loads(row["value"]) for row in hours][:5]
    assert rows == [{"city": f"c{n}", "n": 31 if n == 0 else 30} for n in range(5)]
