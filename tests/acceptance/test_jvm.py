"""`kaflow run` outlives the JVM of its Spark, and says what happened in lines, not in stacks."""
# pyright: basic

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.testing.services.processes import Processes

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROOT = Path(__file__).parents[2]
NAMES = ("even", "odd")
PATIENCE_S = 300.0


@pytest.fixture
def project(broker, unique, tmp_path):
    """Two pipelines that share the JVM."""
    create_topic(broker.settings, f"{unique}.in", 1)
    for number, name in enumerate(NAMES):
        tmp_path.joinpath(f"{name}.yaml").write_text(
            f"name: {unique}-{name}\n"
            f'query: SELECT id, n FROM "{unique}.in" WHERE n % 2 = {number}\n'
            f"output: {{topic: {unique}.{name}, key: id}}\n"
            f'topics: {{"{unique}.in": {{columns: {{id: VARCHAR, n: BIGINT}}}}}}\n'
        )
    return tmp_path


@contextmanager
def running(project, broker):
    """Give a run, the leader of a process group of its own."""
    paths = os.pathsep.join([str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")])
    names = [f"{name}.yaml" for name in NAMES]
    with project.joinpath("said").open("w") as said:
        run = subprocess.Popen(
            [sys.executable, "-m", "kaflow_engine.cli.main", "run", *names, "--plain"],
            cwd=project,
            env={
                **os.environ,
                "PYTHONPATH": paths,
                "PYTHONUNBUFFERED": "1",
                "KAFLOW__KAFKA__BROKERS": broker.bootstrap,
            },
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield run
    finally:
        for pid in Processes().tree(run.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.wait()


def send(broker, unique, numbers):
    producer = open_producer(broker.settings).api
    for n in numbers:
        producer.produce(f"{unique}.in", json.dumps({"id": f"u{n % 5}", "n": n}).encode())
    assert producer.flush(30) == 0


def delivered(broker, unique):
    return sorted(
        json.loads(value)["n"]
        for name in NAMES
        for value in read_all(broker.settings, f"{unique}.{name}")["value"].to_pylist()
    )


def wait_for(found, run, said):
    deadline = time.monotonic() + PATIENCE_S
    while not (it := found()):
        assert run.poll() is None, said()
        assert time.monotonic() < deadline, said()
        time.sleep(0.2)
    return it


def jvm_of(run):
    now = Processes()
    return next((pid for pid in now.children(run.pid) if now[pid].name == "java"), None)


def test_a_run_goes_on_after_its_jvm_was_killed_and_ends_well(project, broker, unique):
    def said():
        return project.joinpath("said").read_text()

    def all_of(numbers):
        return lambda: delivered(broker, unique) == sorted(numbers)

    send(broker, unique, range(10))
    with running(project, broker) as run:
        wait_for(lambda: "first row of" in said(), run, said)
        wait_for(all_of(range(10)), run, said)
        first = jvm_of(run)
        os.kill(first, signal.SIGKILL)
        send(broker, unique, range(10, 20))
        wait_for(all_of(range(20)), run, said)
        assert jvm_of(run) not in (None, first)
        os.killpg(run.pid, signal.SIGTERM)
        for pid in Processes().tree(run.pid)[1:]:  # and as those do that know no groups
            with suppress(ProcessLookupError):  # it has ended since the list was made
                os.kill(pid, signal.SIGTERM)
        assert run.wait(PATIENCE_S) == 0, said()
    text = said()
    assert delivered(broker, unique) == list(range(20))
    assert text.count("starts again: Spark's JVM ended") == len(NAMES), text
    assert not [word for word in ("Traceback", "py4j", "fault of kaflow", "\tat ") if word in text]
