"""A file of SQLFlow whose windows are open, killed at twenty points: each window leaves once, and
its counts are right."""
# pyright: basic

import json
from collections import Counter
from datetime import UTC, datetime

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from tests.acceptance.crash_pipeline import START
from tests.acceptance.killed_files import KILLS, TRIED
from tests.committed import read_committed

pytestmark = pytest.mark.kafka

TOPIC = "sqlflow.posts"
POSTS, CITIES = 480, 4
MINUTE, HOUR = 60_000, 3_600_000
FIRST = START - START % HOUR
FILE = """
tables:
  sql:
    - name: cities
      sql: CREATE TABLE cities (bucket TIMESTAMPTZ, city VARCHAR, n INT, amount INT)
      window:
        time_column: bucket
        size_seconds: 3600
        grace_seconds: 1800
        late_rows: dead_letter
        emit_sql: |
          SELECT bucket, city, sum(n)::INT AS n, sum(amount)::INT AS amount
          FROM closed GROUP BY ALL
        sink: {{type: kafka, kafka: {{brokers: ['{broker}'], topic: {name}, key: city}}}}
pipeline:
  name: {name}
  batch_size: 7
  on_error: {{policy: DLQ}}
  source:
    type: kafka
    kafka: {{brokers: ['{broker}'], group_id: {name}, topics: [{topic}]}}
    columns: {{at: TIMESTAMP, city: VARCHAR, amount: INTEGER}}
  handler:
    type: handlers.InferredMemBatch
    sql: |
      INSERT INTO cities BY NAME
      SELECT date_trunc('hour', CAST(at AS TIMESTAMPTZ)) AS bucket, city, count(*) AS n,
        sum(amount) AS amount
      FROM batch GROUP BY bucket, city
  sink: {{type: noop}}
"""


def posts():
    """Return city, amount and time of posts: some are half an hour late, all within the grace."""
    return [
        (f"c{n * 7 % CITIES}", n % 13, FIRST + n * MINUTE - (n % 9 == 0) * 25 * MINUTE + HOUR)
        for n in range(POSTS)
    ]


def text_of(at):
    return datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")


def counted():
    """Return the number and the amount of each city and hour, as Python counts them."""
    number, amount = Counter(), Counter()
    for city, value, at in posts():
        number[city, at - at % HOUR] += 1
        amount[city, at - at % HOUR] += value
    return {each: (number[each], amount[each]) for each in number}


@pytest.fixture(scope="module")
def inputs(crash_broker):
    create_topic(crash_broker.settings, TOPIC, 3, {"retention.ms": "-1"})
    producer = open_producer(crash_broker.settings).api
    for n, (city, amount, at) in enumerate(posts()):
        value = json.dumps({"at": text_of(at), "city": city, "amount": amount})
        producer.produce(TOPIC, value.encode(), partition=n % 3, timestamp=at)
    assert producer.flush(30) == 0


def write(folder, order):
    """Write the file of a run, and return its path."""
    file = folder / f"{order.name}.yml"
    file.write_text(FILE.format(broker=order.broker, name=order.name, topic=TOPIC))
    return file


def sent(broker, name):
    """Return the rows of each window that has left, and how often each left."""
    rows = [json.loads(row) for row in read_committed(broker.settings, name)["value"].to_pylist()]
    keys = Counter((row["city"], row["bucket"]) for row in rows)
    return {(r["city"], r["bucket"]): (r["n"], r["amount"]) for r in rows}, keys


@pytest.fixture(scope="module")
def runs(file_runs, inputs):
    return file_runs(write)


@pytest.fixture(scope="module")
def peace_of_it(crash_broker, runs):
    """What a run sends that is not killed."""
    return sent(crash_broker, runs.in_peace("sqlflow_peace"))


def test_each_window_leaves_once_and_its_counts_are_right(peace_of_it):
    windows, times = peace_of_it
    right = {(city, text_of(hour)): found for (city, hour), found in counted().items()}
    assert windows.items() <= right.items()
    assert set(times.values()) == {1}
    assert len(right) - len(windows) == CITIES  # the last hour is open
    assert len(KILLS) == 20


@pytest.fixture(scope="module")
def killed(runs):
    return runs.killed("sqlflow")


@pytest.mark.parametrize("kill", TRIED, ids=str)
def test_a_file_that_is_killed_sends_the_same(crash_broker, killed, peace_of_it, kill):
    killed[kill].check()
    assert sent(crash_broker, killed[kill].name) == peace_of_it
