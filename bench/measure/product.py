"""Runs the product as its users do: `kaflow run` of a file, in a process of its own."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from bench.measure.child import Child
from bench.measure.rates import Batch

_LONGEST = 1 << 18
"""Bytes of a line of progress, at most."""


@dataclass(slots=True, kw_only=True)
class Product(Child):
    """One `kaflow run`; its folder holds pipeline file, state, log and progress."""

    name: str = "kaflow run"
    brokers: str
    registry: str | None = None
    master: str = "local[2]"
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Sequence[str] = ()
    """More options of `kaflow run`."""

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
        self.start(command)
        return self

    @property
    def file(self) -> Path:
        """The pipeline file: what has no name of its own is called as its folder."""
        return self.folder / f"{self.folder.name}.yaml"

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.folder / "state"

    @property
    def live(self) -> bool:
        """Whether it reads its live stream."""
        if not self._progress.exists():
            return False
        with self._progress.open("rb") as file:
            file.seek(max(0, self._progress.stat().st_size - _LONGEST))
            *whole, _ = file.read().split(b"\n")  # the last one may be half written
        return bool(whole) and json.loads(whole[-1])["state"] == "running"

    def progress(self) -> list[dict[str, Any]]:
        """Return what it has reported so far."""
        if not self._progress.exists():
            return []
        lines = self._progress.read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]  # the last one may be half written

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
