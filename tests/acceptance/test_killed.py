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
USERS, EVENTS, MOST = 20, 160, 40
CRASHES = ("changes_written:2", "before_commit:3", "committed:4")
"""Batch 1 holds the profiles."""


@pytest.fixture
def kafka(broker, unique):
    settings = KafkaSettings.of([broker.bootstrap])
    for name, partitions in (("events", 3), ("profiles", 2), ("out", 2), ("out.dead", 1)):
        create_topic(settings, f"{unique}.{name}", partitions)
    producer = open_producer(settings).api
    for n in range(USERS):
        value = {"id": f"u{n}", "tier": f"t{n}"}
        producer.produce(f"{unique}.profiles", json.dumps(value).encode(), f"u{n}".encode())
    for n in range(EVENTS):
        key = f"u{n % USERS}"
        value = {"id": key, "n": str(n)}
        producer.produce(f"{unique}.events", json.dumps(value).encode(), key.encode())
    assert producer.flush(30) == 0
    return settings


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
    log = BatchLog(LocalStore(tmp_path / unique))
    for crash_at in CRASHES:
        killed = run(broker, tmp_path, unique, crash_at)
        assert killed.returncode == -signal.SIGKILL, (crash_at, killed.stderr)
        left = log.open_batch()
        assert left is not None
        assert crash_at.endswith(f":{left.number}")
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
