"""Hours, days, sessions and a rolling sum of a SQLFlow file, upserted into Postgres, killed at ten
points: each window has the numbers that Python counts."""
# pyright: basic

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from tests.acceptance.crash_pipeline import START
from tests.acceptance.killed_files import KILLS
from tests.acceptance.kills import share

pytestmark = [pytest.mark.kafka, pytest.mark.services]

TEN = KILLS[::2]
TRIED = share(TEN, 3)
TOPIC = "sqlflow.visits"
VISITS, USERS = 480, 5
HOUR, DAY, GAP = timedelta(hours=1), timedelta(days=1), timedelta(minutes=30)
FIRST = datetime.fromtimestamp(START // 1000, UTC).replace(hour=0, minute=0, second=0) - 4 * DAY
WINDOWS = {
    "hours": "size_seconds: 3600",
    "days": "size_seconds: 86400",
    "sessions": "session_gap_seconds: 1800",
    "rolling": "size_seconds: 7200\n        advance_seconds: 3600",
}
TABLE = """
    - name: {table}
      sql: CREATE TABLE {table} (start TIMESTAMPTZ, u VARCHAR, n BIGINT)
      window:
        time_column: start
        emit_sql: SELECT start::TIMESTAMPTZ AS start, u, n FROM closed
        {window}
        sink:
          type: postgres
          postgres: {{dsn: '{dsn}', table: {name}_{table}, mode: upsert, key: [start, u]}}"""
FILE = """
tables:
  sql:{tables}
pipeline:
  name: {name}
  on_error: {{policy: DLQ}}
  source:
    type: kafka
    kafka: {{brokers: ['{broker}'], group_id: {name}, topics: [{topic}]}}
    columns: {{at: TIMESTAMP, u: VARCHAR, v: INTEGER}}
  handler:
    type: handlers.InferredMemBatch
    sql: |
      INSERT INTO hours BY NAME
      SELECT date_trunc('hour', CAST(at AS TIMESTAMPTZ)) AS start, u, count(*) AS n
      FROM batch GROUP BY ALL;
      INSERT INTO days BY NAME
      SELECT date_trunc('day', CAST(at AS TIMESTAMPTZ)) AS start, u, count(*) AS n
      FROM batch GROUP BY ALL;
      INSERT INTO sessions BY NAME
      SELECT CAST(at AS TIMESTAMPTZ) AS start, u, count(*) AS n FROM batch GROUP BY ALL;
      INSERT INTO rolling BY NAME
      SELECT CAST(at AS TIMESTAMPTZ) AS start, u, sum(v)::BIGINT AS n FROM batch GROUP BY ALL;
      SELECT u, v FROM batch
  sink: {{type: kafka, kafka: {{brokers: ['{broker}'], topic: {name}}}}}
"""


def visits():
    """Return user, value and time of visits over three days, one each ten minutes."""
    pauses = (timedelta(minutes=10 * n) for n in range(VISITS))
    return [(f"u{n // 7 % USERS}", n % 13, FIRST + at) for n, at in enumerate(pauses)]


def counted():
    """Return what each table has of each window, as Python counts it, also of those still open."""
    found = {table: Counter() for table in WINDOWS}
    sessions = {}
    for user, value, at in visits():
        hour = at.replace(minute=0)
        found["hours"][hour, user] += 1
        found["days"][at.replace(hour=0, minute=0), user] += 1
        for start in (hour - HOUR, hour):
            found["rolling"][start, user] += value
        start, last = sessions.get(user, (at, at))
        start = at if at - last > GAP else start
        sessions[user] = start, at
        found["sessions"][start, user] += 1
    return found


@pytest.fixture(scope="module")
def inputs(crash_broker):
    create_topic(crash_broker.settings, TOPIC, 3, {"retention.ms": "-1"})
    producer = open_producer(crash_broker.settings).api
    for n, (user, value, at) in enumerate(visits()):
        text = json.dumps({"at": at.isoformat(), "u": user, "v": value})
        when = int(at.timestamp() * 1000)
        producer.produce(TOPIC, text.encode(), partition=n % 3, timestamp=when)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def runs(file_runs, inputs, postgres):
    """Make runs whose tables are there."""

    def write(folder, order):
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            for table in WINDOWS:
                columns = "(start timestamptz, u text, n bigint, PRIMARY KEY (start, u))"
                connection.execute(f'CREATE TABLE IF NOT EXISTS "{order.name}_{table}" {columns}')
        about = {"name": order.name, "dsn": postgres.url}
        tables = "".join(
            TABLE.format(table=table, window=window, **about) for table, window in WINDOWS.items()
        )
        file = folder / f"{order.name}.yml"
        file.write_text(
            FILE.format(tables=tables, broker=order.broker, name=order.name, topic=TOPIC)
        )
        return file

    return file_runs(write)


def upserted(postgres, name):
    """Return what each table has."""
    with psycopg.connect(postgres.url) as connection:
        connection.execute("SET TimeZone TO 'UTC'")
        return {
            table: {
                (at, user): n
                for at, user, n in connection.execute(f'SELECT start, u, n FROM "{name}_{table}"')
            }
            for table in WINDOWS
        }


@pytest.fixture(scope="module")
def peace_of_it(postgres, runs):
    """What a run writes that is not killed."""
    return upserted(postgres, runs.in_peace("sqlflow_tables"))


@pytest.mark.parametrize("table", WINDOWS)
def test_windows_have_the_numbers_of_their_rows(peace_of_it, table):
    found, right = peace_of_it[table], counted()[table]
    assert found.items() <= right.items()
    missing = {at for at, _ in right.keys() - found.keys()}
    assert min(missing) >= max(at for at, _ in found) - DAY  # only the last ones are open
    assert len(found) > len(right) / 2
    assert len(TEN) == 10


@pytest.fixture(scope="module")
def killed(runs):
    return runs.killed("sqlflow_tables", TRIED)


@pytest.mark.parametrize("kill", TRIED, ids=str)
def test_a_file_that_is_killed_writes_the_same(postgres, killed, peace_of_it, kill):
    killed[kill].check()
    assert upserted(postgres, killed[kill].name) == peace_of_it
