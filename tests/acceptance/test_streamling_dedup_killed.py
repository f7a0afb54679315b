"""The deduplication of Streamling's documents, killed at twenty points: the set is filled by the
rows that ask it, and of each user the first event passes once."""
# pyright: basic

import json
from collections import Counter

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from tests.acceptance.crash_pipeline import START
from tests.acceptance.killed_files import KILLS, TRIED
from tests.committed import read_committed

pytestmark = pytest.mark.kafka

TOPIC = "user.events"
EVENTS, USERS, PARTITIONS = 480, 170, 3
FILE = """
sources:
  user.events:
    type: kafka
    topic: {topic}
    data_format: json
    primary_key: event_id
    schema: {{event_id: BIGINT, user_id: VARCHAR}}
transforms:
  seen_users:
    type: dynamic_table
    backend_type: Postgres
    backend_entity_name: user_dedup
    sql: |
      SELECT user_id
      FROM user.events
  filtered_events:
    type: sql
    sql: |
      SELECT *
      FROM user.events
      WHERE NOT dynamic_table_check('seen_users', user_id)
    primary_key: event_id
sinks:
  firsts:
    type: kafka
    from: filtered_events
    topic: {name}
    data_format: json
"""


def user(number):
    """Return whose an event is: new users come until the end."""
    return number * 31 % max(number * USERS // EVENTS, 1)


def firsts():
    """Return the event of each user that is the first."""
    found = {}
    for number in range(EVENTS):
        found.setdefault(user(number), number)
    return Counter(found.values())


@pytest.fixture(scope="module")
def inputs(crash_broker):
    create_topic(crash_broker.settings, TOPIC, PARTITIONS, {"retention.ms": "-1"})
    producer = open_producer(crash_broker.settings).api
    for n in range(EVENTS):
        value = json.dumps({"event_id": n, "user_id": f"u{user(n)}"}).encode()
        producer.produce(TOPIC, value, partition=user(n) % PARTITIONS, timestamp=START + n * 1000)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def runs(file_runs, inputs):
    def write(folder, order):
        file = folder / f"{order.name}.yaml"
        file.write_text(FILE.format(topic=TOPIC, name=order.name))
        return file

    return file_runs(write)


def passed(broker, name):
    """Return how often each event was sent."""
    values = read_committed(broker.settings, name)["value"].to_pylist()
    return Counter(json.loads(value)["event_id"] for value in values)


def test_the_first_event_of_each_user_passes(crash_broker, runs):
    assert passed(crash_broker, runs.in_peace("dedup")) == firsts()
    assert len(KILLS) == 20


@pytest.fixture(scope="module")
def killed(runs):
    return runs.killed("dedup")


@pytest.mark.parametrize("kill", TRIED, ids=str)
def test_it_does_so_once_where_a_run_is_killed(crash_broker, killed, kill):
    killed[kill].check()
    assert passed(crash_broker, killed[kill].name) == firsts()
