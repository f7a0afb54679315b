"""Runs the product as its users do: `kaflow run` of a file, in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from bench.measure.rates import Batch
from kaflow_engine.errors import RunError

ROOT = Path(__file__).parent.parent.parent
_LONGEST = 1 << 18
"""Bytes of a line of progress, at most."""


@dataclass(slots=True, kw_only=True)
class Product:
    """One `kaflow run`; leaving the block ends it."""

    folder: Path
    """Holds pipeline file, state, log and progress; of this pipeline alone."""
    brokers: str
    registry: str | None = None
    master: str = "local[2]"
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Sequence[str] = ()
    """More options of `kaflow run`."""
    began: float = 0.0
    """Epoch seconds at which the process was started."""
    _child: "subprocess.Popen[bytes] | None" = None

    def write(self, pipeline: str) -> None:
        """Write the pipeline file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file.write_text(pipeline)

    def __enter__(self) -> Self:
        settings = {
            "kafka.brokers": self.brokers,
            "state.rocksdb.path": str(self.state),
            "spark.master": self.master,
            **({"kafka.schemaRegistry": self.registry} if self.registry else {}),
            **self.settings,
        }
        command = [sys.executable, "-m", "kaflow_engine.cli.main", "run"]
        command += [str(self.file), "--plain"]
        command += ["--progress", str(self._progress), *self.options]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        self._progress.unlink(missing_ok=True)
        self.began = time.time()
        with (self.folder / "run.log").open("ab") as log:
            # a session of its own: Ctrl-C is for us, and we pass it on
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment(),
                start_new_session=True,
            )
        return self

    def __exit__(self, *about: object) -> None:
        self.stop()

    @property
    def file(self) -> Path:
        """The pipeline file: what has no name of its own is called as its folder."""
        return self.folder / f"{self.folder.name}.yaml"

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.folder / "state"

    @property
    def pid(self) -> int:
        """The driver's process."""
        assert self._child is not None
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def live(self) -> bool:
        """Whether it reads its live stream."""
        if not self._progress.exists():
            return False
        with self._progress.open("rb") as file:
            file.seek(max(0, self._progress.stat().st_size - _LONGEST))
            *whole, _ = file.read().split(b"\n")  # the last one may be half written
        return bool(whole) and json.loads(whole[-1])["state"] == "running"

    def wait(self, seconds: float) -> None:
        """Wait until it ends by itself.

        Raises:
            RunError: It failed, or takes too long.
        """
        assert self._child is not None
        try:
            code = self._child.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise RunError(f"kaflow run did not end in {seconds:g} s", hint=self.words()) from error
        if code:
            raise RunError(f"kaflow run ended with {code}", hint=self.words())

    def until(
        self, holds: Callable[[], bool], seconds: float = 240.0, what: str = "what it must do"
    ) -> None:
        """Wait until something holds.

        Args:
            holds: Looked at again and again.
            seconds: How long, at most.
            what: Is waited for, as errors say it.

        Raises:
            RunError: It ended before, or it takes too long.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            if not self.running:
                raise RunError(f"kaflow run ended before {what} came", hint=self.words())
            if time.monotonic() > deadline:
                raise RunError(f"{what} did not come in {seconds:g} s", hint=self.words())
            time.sleep(0.05)

    def stop(self, seconds: float = 90.0) -> None:
        """Ask it to end, and end it with all its processes when it does not."""
        if self._child is None:
            return
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)  # its JVM, if it is still there
        self._child.wait()

    def progress(self) -> list[dict[str, Any]]:
        """Return what it has reported so far."""
        if not self._progress.exists():
            return []
        lines = self._progress.read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]  # the last one may be half written

    def words(self) -> str:
        """Return the end of its log."""
        log = self.folder / "run.log"
        return "\n        ".join(log.read_text(errors="replace").splitlines()[-12:])

    @property
    def _progress(self) -> Path:
        return self.folder / "progress.jsonl"


def batches_of(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those entries that tell of a batch with records, once for each."""
    found: dict[int, Mapping[str, Any]] = {}
    for entry in entries:
        if entry["batch"] and entry["batch_records"]:
            found.setdefault(entry["batch"], entry)
    return list(found.values())


def measured(entries: Sequence[Mapping[str, Any]]) -> list[Batch]:
    """Return the batches of a live stream; those that loaded dimensions are left out."""
    live = [e for e in batches_of(entries) if e["state"] == "running"]
    return [Batch(end=e["time"], records=e["batch_records"], spent=e["batch_ms"]) for e in live]


def environment() -> dict[str, str]:
    """Return the environment of processes that import this project."""
    paths = [str(ROOT / "engine"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
