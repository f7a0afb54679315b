"""Three `kaflow run` over one volume: one runs the pipelines, and another one after its SIGKILL."""
# pyright: basic

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.testing.services.processes import Processes

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PATIENCE_S = 120.0
CHANGED = threading.Condition()
"""Notified when one of the processes has said something."""


class Replica:
    """One of the processes, and what it has said so far."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kaflow_engine.cli.main", "run", "config.yaml", "pipelines/"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = ""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                with CHANGED:
                    self.said += line
                    CHANGED.notify_all()

    def says(self, pattern: str) -> "re.Match[str]":
        """Wait until it has said something."""
        first_that_says(pattern, self)
        found = re.search(pattern, self.said)
        assert found
        return found

    def ask(self, path: str) -> tuple[int, dict]:
        address = self.says(r"health, status and metrics at (\S+)")[1]
        try:
            with urlopen(f"{address}{path}") as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)

    def stands_by_for(self, other: "Replica") -> None:
        """Live, not ready, without a JVM, and knows for whom it waits."""
        self.says(f"standing by: another run holds .*: process {other.process.pid} on ")
        assert self.ask("/health/live")[0] == 200
        assert self.ask("/health/ready")[0] == 503
        states = {each["state"] for each in self.ask("/status")[1]["pipelines"]}
        assert states == {"standby"}
        assert Processes().tree(self.process.pid) == (self.process.pid,)

    def gone(self) -> None:
        self.process.kill()
        self.process.wait()
        self._listener.join(PATIENCE_S)  # a JVM that was left alone ends a moment later

    def ends(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def first_that_says(pattern: str, *replicas: Replica) -> Replica:
    """Wait until one of some processes has said something."""

    def found() -> "Replica | None":
        return next((each for each in replicas if re.search(pattern, each.said)), None)

    with CHANGED:
        first = CHANGED.wait_for(found, PATIENCE_S)
    assert first, "\n".join(f"waited for {pattern!r}:\n{each.said}" for each in replicas)
    return first


@pytest.fixture
def folder(tmp_path, broker, unique):
    """Two pipelines, and the configuration in a file that is named on the command line."""
    (tmp_path / "pipelines").mkdir()
    for name, where in (("even", "n % 2 = 0"), ("odd", "n % 2 = 1")):
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(
            f'name: {unique}-{name}\nquery: SELECT id, n FROM "{unique}.in" WHERE {where}\n'
            f"output: {{topic: {unique}.{name}, key: id}}\n"
            f"topics: {{{unique}.in: {{columns: {{id: VARCHAR, n: BIGINT}}}}}}\n"
        )
    (tmp_path / "config.yaml").write_text(
        f"kafka: {{brokers: ['{broker.bootstrap}']}}\nhttp: {{port: 0}}\n"
        f"state: {{rocksdb: {{path: {tmp_path}/volume}}}}\n"
    )
    return tmp_path


def send(kafka, topic, numbers):
    producer = open_producer(kafka).api
    for n in numbers:
        producer.produce(topic, json.dumps({"id": f"u{n}", "n": n}).encode())
    producer.flush(30)


def arrived(kafka, unique):
    values = [
        value
        for name in ("even", "odd")
        for value in read_all(kafka, f"{unique}.{name}").column("value").to_pylist()
    ]
    return sorted(json.loads(value)["n"] for value in values)


def test_one_runs_and_the_next_takes_over(folder, broker, unique):
    kafka = KafkaSettings.of([broker.bootstrap])
    create_topic(kafka, f"{unique}.in", 1)
    send(kafka, f"{unique}.in", range(10))
    both_run = rf"(?s)(?=.*{unique}-even: running)(?=.*{unique}-odd: running)"
    replicas = [Replica(folder) for _ in range(3)]
    try:
        leader = first_that_says("starting Spark", *replicas)
        waiting = [each for each in replicas if each is not leader]
        leader.says(both_run)
        for each in waiting:
            each.stands_by_for(leader)
        assert leader.ask("/health/ready")[0] == 200
        assert leader.ends(signal.SIGKILL) == -signal.SIGKILL
        send(kafka, f"{unique}.in", range(10, 20))
        heir = first_that_says("starting Spark", *waiting)
        (last,) = [each for each in waiting if each is not heir]
        heir.says(both_run)
        last.stands_by_for(heir)
        deadline = time.monotonic() + PATIENCE_S
        while arrived(kafka, unique) != list(range(20)):
            assert time.monotonic() < deadline, heir.said
        assert last.ends(signal.SIGTERM) == 0
        last.says("stopped before anything ran")
        assert heir.ends(signal.SIGTERM) == 0
    finally:
        for each in replicas:
            each.gone()
    assert arrived(kafka, unique) == list(range(20))
