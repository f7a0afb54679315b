"""Pipelines on Spark, killed and started again over the same states until they are done."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kaflow_engine.connectors.kafka.run_log.control_records import ControlView
from kaflow_engine.connectors.kafka.run_log.transactions import ControlReader, control_topic
from kaflow_engine.runtime.tasks.crash import VARIABLE
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.processes import Processes, look
from tests.acceptance.crash_on_spark import plans
from tests.acceptance.crash_pipeline import Delivered, create_outputs, delivered, log_of

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300.0
T = TypeVar("T")
VICTIMS = ("driver", "jvm", "worker", "broker")


class CaughtUp(Exception):
    """The pipelines have taken all records, and there is nothing left to kill."""


@dataclass(slots=True)
class Chain:
    """Starts two pipelines whenever a kill has ended them; use it in a `with`."""

    broker: Broker
    path: Path
    name: str
    """Of the pipeline into a topic; `<name>-table` is that into a table."""
    inputs: str
    _without_jvm: bool = False
    """Whether the driver has lost one."""
    _process: subprocess.Popen[str] | None = None
    _left: list[int] = field(default_factory=list)

    def __enter__(self) -> "Chain":
        for name in self._names:
            create_outputs(self.broker.settings, name)
        self.start()
        return self

    def __exit__(self, *about: object) -> None:
        for pid in (*Processes().tree(self.driver), *self._left):
            _send(pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    @property
    def driver(self) -> int:
        """Process id of the driver."""
        assert self._process is not None
        return self._process.pid

    @property
    def batches(self) -> int:
        """Batches that are committed, of both."""
        return sum(log_of(self.path, name).next_number() - 1 for name in self._names)

    def delivered(self) -> dict[str, Delivered]:
        """Return what both have done, by kind of output."""
        return both_delivered(self.broker, self.path, self.name)

    def start(self) -> None:
        """Start a driver."""
        self._without_jvm = False
        paths = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
        command = [sys.executable, "-m", "tests.acceptance.crash_on_spark"]
        with self._errors.open("a") as errors:
            self._process = subprocess.Popen(
                [*command, self.broker.bootstrap, str(self.path), self.name, self.inputs],
                env={**os.environ, "PYTHONPATH": paths, VARIABLE: f"@{self._file}"},
                stdout=subprocess.DEVNULL,
                stderr=errors,
                text=True,
            )

    def progress(self) -> None:
        """Wait for another commit.

        Raises:
            CaughtUp: There is none.
        """
        goal = self.batches + 1
        self._until(lambda: self.batches >= goal, f"batch {goal} to be committed")

    def stop_at(self, point: str) -> int:
        """Return the process that has come to a crash point, and stands still there.

        Raises:
            CaughtUp: None will.
        """
        self._file.write_text(f"{point}:*:pause")
        return self._until(self._stopped, f"'{point}' to be reached")[0]

    def kill(self, victim: str, stopped: int | None = None) -> None:
        """Kill a driver, its JVM, a Python worker, or the broker.

        Args:
            victim: One of VICTIMS; or all `workers`; or `sleeper`: the driver goes, and its worker
                that has `stopped` wakes up when the next run has begun.
            stopped: The process that stands still, if one does.

        Raises:
            CaughtUp: There was none.
        """
        match victim:
            case "driver":
                self._end_driver()
                if stopped != self.driver:
                    _send(stopped, signal.SIGKILL)
                self.start()
            case "sleeper":
                assert stopped not in (None, self.driver)
                self._left.append(stopped)
                before = self._epochs()
                self._end_driver()
                self.start()
                self._until(lambda: not before & self._epochs(), "the next runs to begin")
                _send(stopped, signal.SIGCONT)
                self._until(lambda: look(stopped).ended, "the sleeper to end")
            case "jvm":
                gone, driver = self._until(self._jvm, "the JVM"), self.driver
                self._without_jvm = True
                _send(gone, signal.SIGKILL)
                _send(stopped, signal.SIGCONT)
                self._until(lambda: self._jvm() not in (None, gone), "another JVM")
                assert stopped is None or self.driver == driver, "a run goes on without its JVM"
            case "worker" | "workers":
                if stopped in (None, self.driver):
                    self._until(lambda: bool(self._workers()), "a Python worker")
                    for pid in self._workers()[-1 if victim == "worker" else 0 :]:
                        _send(pid, signal.SIGKILL)
                    _send(stopped, signal.SIGCONT)
                else:
                    _send(stopped, signal.SIGKILL)
            case _:
                self.broker.kill()
                self.broker.start()
                _send(stopped, signal.SIGCONT)

    def finish(self) -> None:
        """Let the pipelines do the rest."""
        self._file.unlink(missing_ok=True)
        with suppress(CaughtUp):
            while True:
                self.progress()

    @property
    def _file(self) -> Path:
        return self.path / f"{self.name}.crash"

    @property
    def _errors(self) -> Path:
        return self.path / f"{self.name}.stderr"

    def _end_driver(self) -> None:
        _send(self.driver, signal.SIGKILL)
        self._process.wait()

    def _stopped(self) -> list[int]:
        now = Processes()
        return [pid for pid in now.tree(self.driver) if now[pid].state == "T"]

    def _jvm(self, now: Processes | None = None) -> int | None:
        now = now or Processes()
        return next((pid for pid in now.children(self.driver) if now[pid].name == "java"), None)

    def _workers(self) -> list[int]:
        now = Processes()
        below = now.children(self._jvm(now) or 0)
        daemons = [pid for pid in below if now[pid].name.startswith("python")]
        return [worker for daemon in daemons for worker in now.children(daemon)]

    @property
    def _names(self) -> tuple[str, str]:
        return self.name, f"{self.name}-table"

    def _epochs(self) -> set[tuple[str, int]]:
        return {(name, self._epoch(name)) for name in self._names}

    def _epoch(self, name: str) -> int:
        topic = control_topic(name)
        reader = ControlReader(self.broker.settings, topic, 30_000, committed=False)
        view = ControlView()
        view.take(reader.read_on())
        reader.close()
        return view.epoch

    def _until(self, look: Callable[[], T], what: str) -> T:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := look()):
            code = self._process.poll()
            if code == 0:
                raise CaughtUp(what)
            if code is not None:  # a pipeline that lost its JVM while it started has ended
                assert self._without_jvm, f"ended, waiting for {what}: {self._last_words()}"
                self.start()
            assert time.monotonic() < deadline, f"waited too long for {what}: {self._last_words()}"
            time.sleep(0.2)
        return found

    def _last_words(self) -> str:
        return self._errors.read_text()[-2000:]


def both_delivered(broker: Broker, path: Path, name: str) -> dict[str, Delivered]:
    """Return what the pipelines into a topic and into a table have done."""
    found: dict[str, Delivered] = {}
    for kind, plan in plans(name, "", str(path)).items():
        warehouse = str(path / "warehouse") if kind == "table" else ""
        log = log_of(path, plan.name)
        found[kind] = delivered(broker.settings, plan.name, log, warehouse)
    return found


def _send(pid: int | None, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, number)
