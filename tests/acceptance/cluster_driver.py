"""A driver of a cluster in a process of its own, and how to stop its tasks where it hurts."""
# pyright: basic

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from kaflow_engine.runtime.spark.class_archive import archive_options, spark_archive
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.tasks.crash import VARIABLE
from kaflow_engine.testing.services.processes import Processes, look
from tests.acceptance.cluster_child import DONE
from tests.acceptance.crash_pipeline import log_of
from tests.conftest import SHORT_LIVED

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
PATIENCE_S = 120.0
MOST = 400
"""Records of a batch: as long as it is the same, so are the cuts."""


class Driver:
    """Runs one pipeline after the other; use it in a `with`."""

    def __init__(self, kafka, cluster, path):
        self.cluster, self.path = cluster, path
        self._kafka = kafka
        self._order = path / "order"
        self._errors = path / "stderr"
        self._name = ""

    def __enter__(self):
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.cluster_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": PATHS, "SPARK_LOCAL_IP": "127.0.0.1"},
                cwd=ROOT,
                text=True,
            )
        return self

    def __exit__(self, *about):
        for stream in (self._process.stdin, self._process.stdout):
            stream.close()
        self.kill()

    def begin(self, name, master):
        """Begin to run a pipeline until it has caught up; its outputs are there."""
        self._name = name
        self._process.stdin.write(json.dumps([name, self._config(master)]) + "\n")
        self._process.stdin.flush()

    def finish(self):
        """Wait until it has."""
        assert self._process.stdout.readline().strip() == DONE, self._last_words()

    def kill(self):
        """End the driver as a crash would."""
        self._process.kill()
        self._process.wait()

    def grow(self):
        """Add a worker, and wait for its executor."""
        self.cluster.add_workers()
        count = len(self.cluster.workers)
        self.until(lambda: len(self.cluster.executors()) == count, f"{count} executors")

    def stop_at(self, point):
        """Return worker, executor and task of who stands still at a crash point."""
        self._order.write_text(f"{point}:*:pause")
        task = self.until(self._stopped, f"a task to come to '{point}'")
        executor = look(look(task).parent).parent  # between them is Python's daemon
        return look(executor).parent, executor, task

    def go_on(self):
        """Wait for one more commit."""
        log = log_of(self.path, self._name)
        batch = log.next_number()
        self.until(lambda: log.next_number() > batch, f"batch {batch} to be committed")

    def until(self, look, what):
        """Wait until `look` finds something and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := look()):
            assert time.monotonic() < deadline, f"waited for {what}: {self._last_words()}"
            time.sleep(0.2)
        return found

    def _config(self, master):
        archive = archive_options(spark_archive(find_java()))
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.executor.extraJavaOptions": " ".join([SHORT_LIVED, *archive]),
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executorEnv.PYTHONPATH": PATHS,
            f"spark.executorEnv.{VARIABLE}": f"@{self._order}",
            # an executor that hangs is missed after seconds
            "spark.executor.heartbeatInterval": "1s",
            "spark.network.timeout": "8s",
            "spark.network.timeoutInterval": "1s",
        }
        return {
            "kafka": {"brokers": self._kafka.bootstrap},
            "state": {"rocksdb": {"path": str(self.path), "checkpoint": {"interval": "2s"}}},
            "max_records": MOST,
            "spark": {"master": master, "conf": conf},
        }

    def tasks(self):
        """Return the Python processes in which executors run tasks."""
        now = Processes()
        daemons = [pid for executor in self.cluster.executors() for pid in now.children(executor)]
        return [task for daemon in daemons for task in now.children(daemon)]

    def _stopped(self):
        return next((task for task in self.tasks() if look(task).state == "T"), None)

    def _last_words(self):
        return self._errors.read_text()[-3000:]


def kill(*pids):
    """Kill processes, of which some may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
