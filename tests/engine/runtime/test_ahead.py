"""A JVM that is launched ahead is the one of the session, or is gone."""

import json
import os
import subprocess
import sys

import pytest

from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.spark import ahead
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_ahead, start_session
from kaflow_engine.testing.services.processes import Processes
from tests.conftest import SHORT_LIVED


def config(memory: str) -> SparkConfig:
    conf = {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": SHORT_LIVED}
    return SparkConfig(conf=conf)


def run_here(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "tests.engine.runtime.test_ahead", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


@pytest.mark.spark
@pytest.mark.parametrize(("memory", "same"), [("600m", True), ("601m", False)])
def test_a_session_takes_the_jvm_that_has_its_settings(tmp_path, memory, same):
    done = run_here(memory, folder=tmp_path)
    first, own, left = json.loads(done.stdout.splitlines()[-1])
    assert (own == first) is same
    assert (first in left) is same


@pytest.mark.spark
def test_nothing_is_left_where_no_session_follows(tmp_path):
    run_here(folder=tmp_path)
    assert list(tmp_path.rglob("kaflow-spark-*")) == []


def test_what_fails_ahead_is_left_to_the_session(monkeypatch):
    monkeypatch.setattr(ahead, "_launch", ahead._Launch())

    def fails():
        raise ValueError("no Java")

    ahead.launch_ahead(fails)
    assert ahead.take_launched(None) is None


def main(memory: str | None = None) -> None:
    """Launch a JVM ahead, and start a session with so much memory; print which JVMs there are."""
    start_ahead(config("600m"), find_java, tuple)
    if memory is None:
        return
    thread = ahead._launch.thread
    assert thread is not None
    thread.join()
    first = ahead._launch.gateway.proc
    spark = start_session(config(memory), find_java(), ())
    own = spark.sparkContext._gateway.proc.pid
    if own != first.pid:
        first.wait(30)
    sys.stdout.write(json.dumps([first.pid, own, Processes().children(os.getpid())]))
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
