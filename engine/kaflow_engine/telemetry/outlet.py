"""Exporters that run beside pipelines: the HTTP port, and OpenTelemetry."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from kaflow_engine.model.brought.nodes import FileMetrics
from kaflow_engine.model.config import Config
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.otlp import export
from kaflow_engine.telemetry.previews import Previews
from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.server import serve


@dataclass(frozen=True, slots=True)
class Outlet:
    """What is open while a block runs."""

    address: str | None
    """Where health, status and metrics are read; None: no port could be opened."""
    take: Callable[[Progress], None]
    """Wants to hear of every change."""


@contextmanager
def open_outlet(
    config: Config,
    pipelines: Iterable[str],
    previews: Previews | None = None,
    files: Mapping[str, FileMetrics] | None = None,
) -> Generator[Outlet]:
    """Serve and send until the block ends; nothing of it can fail a pipeline.

    Args:
        config: Where.
        pipelines: The names of all that run.
        previews: Shows their rows to who asks; None: no one does.
        files: By pipeline: metrics that its file wants besides; None: none does.
    """
    metrics = Metrics(pipelines, files)
    with (
        serve(config.http, metrics, previews=previews) as address,
        export(config.otlp, metrics) as spans,
    ):

        def take(progress: Progress) -> None:
            metrics.take(progress)
            spans(progress)

        yield Outlet(address, take)
