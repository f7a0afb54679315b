"""A run that is killed in the middle of a batch, and started again, delivers every row once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka_admin import create_topic
from kaflow_engine.connectors.kafka_client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka_read import read_all
from kaflow_engine.runtime.crash import VARIABLE
from kaflow_engine.state.log import BatchLog
from kaflow_engine.state.store import LocalStore

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROOT = Path(__file__).parents[2]
USERS, KNOWN, EVENTS, MOST = 20, 15, 160, 40
CRASHES = ("changes_written:2", "before_commit:3", "committed:4")
"""Batch 1 holds the profiles; every later one has events that wait, so it writes changes."""


@pytest.fixture
def kafka(broker, unique):
    settings = KafkaSettings.of([broker.bootstrap])
    for name, partitions in (("events", 3), ("profiles", 2), ("out", 2), ("out.dead", 1)):
        create_topic(settings, f"{unique}.{name}", partitions)
    return settings


def send(kafka, topic, values):
    producer = open_producer(kafka, **{"enable.idempotence": True}).api
    for value in values:
        producer.produce(topic, json.dumps(value).encode(), value["id"].encode())
    assert producer.flush(30) == 0


def profiles(users):
    return ({"id": f"u{n}", "tier": f"t{n}"} for n in users)


def run(broker, path, name, crash_at=""):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
    command = [sys.executable, "-m", "tests.engine.runtime.run_here"]
    return subprocess.run(
        [*command, broker.bootstrap, str(path), name, str(MOST)],
        env={**os.environ, "PYTHONPATH": paths, VARIABLE: crash_at},
        check=False,
        capture_output=True,
        text=True,
    )


def test_killed_at_three_points_each_row_arrives_once(broker, kafka, unique, tmp_path):
    send(kafka, f"{unique}.profiles", profiles(range(KNOWN)))
    events = ({"id": f"u{n % USERS}", "n": str(n)} for n in range(EVENTS))
    send(kafka, f"{unique}.events", events)
    log = BatchLog(LocalStore(tmp_path / unique))
    for crash_at in CRASHES:
        killed = run(broker, tmp_path, unique, crash_at)
        assert killed.returncode == -signal.SIGKILL, (crash_at, killed.stderr)
        left = log.open_batch()
        assert left is not None
        assert crash_at.endswith(f":{left.number}")
    # completes what the batches that were run twice have kept
    send(kafka, f"{unique}.profiles", profiles(range(KNOWN, USERS)))
    done = run(broker, tmp_path, unique)
    assert done.returncode == 0, done.stderr
    found = read_all(kafka, f"{unique}.out")
    rows = [json.loads(value) for value in found["value"].to_pylist()]
    assert sorted(rows, key=lambda row: int(row["n"])) == [
        {"id": f"u{n % USERS}", "n": str(n), "tier": f"t{n % USERS}"} for n in range(EVENTS)
    ]
    for user in {row["id"] for row in rows}:
        numbers = [int(row["n"]) for row in rows if row["id"] == user]
        assert numbers == sorted(numbers), "the order of a key"
    counters = json.loads(done.stdout)
    assert counters["emitted"] == counters["read"] == EVENTS
    assert len(read_all(kafka, f"{unique}.out.dead")) == 0
