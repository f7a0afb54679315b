"""Previews beside a run: each in a process of its own, which takes nothing from the run."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.preview.nodes import output_nodes, relation_nodes
from kaflow_engine.preview.preview import Asked
from kaflow_engine.telemetry.previews import Wanted


@dataclass(frozen=True, slots=True)
class RunningPreviews:
    """Shows the rows of pipelines that run; see `telemetry.previews.Previews`.

    Args:
        specs: The pipelines.
        config: That of their run.
    """

    specs: Sequence[PipelineSpec]
    config: Config

    @property
    def nodes(self) -> Mapping[str, Sequence[str]]:
        """The nodes of each pipeline."""
        return {
            spec.name: [node.name for node in (*relation_nodes(spec), *output_nodes(spec))]
            for spec in self.specs
        }

    def lines(self, wanted: Wanted) -> "ChildLines":
        """Return a preview, which begins when it is iterated."""
        spec = next(spec for spec in self.specs if spec.name == wanted.pipeline)
        asked = Asked(
            node=wanted.node, seconds=wanted.seconds, rows=wanted.rows, since=wanted.since
        )
        return ChildLines(pickle.dumps((spec, self.config, asked)))


@dataclass(slots=True)
class ChildLines:
    """The lines that a process prints; it ends with whoever has begun it."""

    _request: bytes = field(repr=False)
    _lock: Lock = field(default_factory=Lock)
    _child: "subprocess.Popen[bytes] | None" = None
    _closed: bool = False

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, each when it is there."""
        with self._lock:
            if self._closed:
                return
            self._child = child = subprocess.Popen(
                [sys.executable, "-m", "kaflow_engine.preview.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the run, which ends this one
            )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with suppress(BrokenPipeError, ValueError):  # closed meanwhile, from another thread
                child.stdin.write(self._request)
                child.stdin.flush()
            for line in child.stdout:
                yield line.decode().rstrip("\n")
            if child.wait() != 0:
                yield json.dumps({"error": f"the preview ended with code {child.returncode}"})
        finally:
            self.close()
            child.stdout.close()
            child.wait()  # it ends with its stdin

    def close(self) -> None:
        """Ask the process to end, and wait for nothing."""
        with self._lock:
            self._closed = True
            if self._child is not None and self._child.stdin is not None:
                with suppress(BrokenPipeError):
                    self._child.stdin.close()
