"""A project in a Dagster instance of its own, as a person would start it: page, daemon, streams."""

# pyright: basic

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from kaflow_dagster.instance import Instance
from kaflow_dagster.names import PIPELINE, PROCESS
from kaflow_engine.cli.init import write_project
from kaflow_engine.testing.child import free_ports

ROOT = Path(__file__).parents[2]
START_S = 180


class Live:
    """Use it in a `with`; it ends with all that it started."""

    def __init__(self, folder: Path, brokers: str) -> None:
        write_project(folder)
        self.instance = Instance(*free_ports(1))
        self.folder = folder
        paths = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
        self._environment = {
            **os.environ,
            "PYTHONPATH": paths,
            "DAGSTER_HOME": str(folder / "dagster_home"),
            "KAFKA_BROKERS": brokers,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Live":
        self._start()
        return self

    def __exit__(self, *about: object) -> None:
        for run in self.runs("enriched_events") if self.instance.answers() else []:
            if run["status"] in ("STARTED", "STARTING", "CANCELING"):
                pid = self.worker(run)
                if pid is not None:
                    _kill(pid)
        self._stop()
        assert self._process is not None
        _kill_group(self._process.pid)

    def _start(self) -> None:
        command = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml"]
        with (self.folder / "dagster.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-h", "127.0.0.1", "-p", str(self.instance.port)],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.until(self.instance.has_loaded, START_S, "the code location to be loaded")

    def _stop(self) -> None:
        """End page, daemon and code server; runs that stream go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def restart(self) -> None:
        """End page, daemon and code server, and start them again."""
        self._stop()
        self._start()

    def until(self, holds, seconds: float, what: str):
        """Wait for a condition; returns what it returned, and how long it took."""
        began = time.monotonic()
        while not (found := holds()):
            assert self._process is not None
            assert self._process.poll() is None, self.words()
            assert time.monotonic() < began + seconds, f"waited for {what}: {self.words()}"
            time.sleep(0.2)
        return found, time.monotonic() - began

    def words(self) -> str:
        """Return the end of what Dagster said."""
        return (self.folder / "dagster.log").read_text(errors="replace")[-4000:]

    def switch_on(self, pipeline: str) -> None:
        """Start a pipeline's sensor."""
        self.instance.switch_on(f"supervise__{pipeline}")

    def switch_off(self, pipeline: str) -> None:
        """Stop a pipeline's sensor."""
        self.instance.switch_off(f"supervise__{pipeline}")

    def ticks(self, pipeline: str) -> list[dict]:
        """Return the last ticks of a pipeline's sensor, newest first."""
        return self.instance.ticks(f"supervise__{pipeline}")

    def runs(self, pipeline: str) -> list[dict]:
        """Return the runs of a stream, newest first."""
        return self.instance.runs({PIPELINE: pipeline})

    def terminate(self, run: dict) -> None:
        """Do what the button in the page does."""
        self.instance.terminate(run["runId"])

    def worker(self, run: dict) -> int | None:
        """Return the process of a run."""
        tags = {tag["key"]: tag["value"] for tag in run["tags"]}
        return int(tags[PROCESS].split(":")[1]) if PROCESS in tags else None


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
