"""A project in a Dagster instance of its own, as a person would start it: page, daemon, streams."""

# pyright: basic

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from kaflow_dagster.development.dev import Dev
from kaflow_dagster.development.instance import Instance
from kaflow_dagster.runs.names import PIPELINE, PROCESS
from kaflow_engine.cli.init import write_project
from kaflow_engine.testing.services.child import free_ports

ROOT = Path(__file__).parents[2]
START_S = 180


class Live:
    """Use it in a `with`; it ends with all that it started."""

    def __init__(self, folder: Path, brokers: str) -> None:
        write_project(folder)
        self.instance = Instance(*free_ports(1))
        self.folder = folder
        self._started: list[Dev] = []
        paths = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
        self._environment = {
            "PYTHONPATH": paths,
            "DAGSTER_HOME": str(folder / "dagster_home"),
            "KAFKA_BROKERS": brokers,
        }

    def __enter__(self) -> "Live":
        self._start()
        return self

    def __exit__(self, *about: object) -> None:
        for run in self.runs("enriched_events") if self.instance.answers() else []:
            if run["status"] in ("STARTED", "STARTING", "CANCELING"):
                pid = self.worker(run)
                if pid is not None:
                    _kill(pid)
        self.dev.stop()
        for dev in self._started:
            dev.kill()

    def _start(self) -> None:
        log = self.folder / "dagster.log"
        workspace = self.folder / "workspace.yaml"
        self.dev = Dev.start(workspace, self.instance.port, log, self._environment, self.folder)
        self._started.append(self.dev)
        self.until(self.instance.has_loaded, START_S, "the code location to be loaded")

    def restart(self) -> None:
        """End page, daemon and code server, and start them again."""
        self.dev.stop()
        self._start()

    def until(self, holds, seconds: float, what: str):
        """Wait for a condition; returns what it returned, and prints how long it took."""
        began = time.monotonic()
        while not (found := holds()):
            assert self.dev.runs, self.dev.words()
            assert time.monotonic() < began + seconds, f"waited for {what}: {self.dev.words()}"
            time.sleep(1)  # each look costs the pages of Dagster some work
        sys.stdout.write(f"{what}: after {time.monotonic() - began:.0f} s\n")
        return found

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
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
