"""The metrics of a process in Prometheus' text format."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    UnknownMetricFamily,
)

from kaflow_engine.model.brought.nodes import FileMetrics
from kaflow_engine.telemetry.metrics.of_nodes import of_nodes
from kaflow_engine.telemetry.metrics.of_plugins import of_plugins
from kaflow_engine.telemetry.metrics.of_sqlflow import OfSqlflow
from kaflow_engine.telemetry.metrics.table import METRICS
from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.steps import steps_of

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_FAMILIES = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "untyped": UnknownMetricFamily,
}


class Metrics:
    """The metrics of the pipelines of one process; used from several threads."""

    def __init__(
        self, pipelines: Iterable[str] = (), files: Mapping[str, FileMetrics] | None = None
    ) -> None:
        """Begin with pipelines that have done nothing.

        Args:
            pipelines: Their names.
            files: By pipeline: metrics that its file wants besides.
        """
        self.newest = {name: Progress(pipeline=name) for name in pipelines}
        """The last progress of each pipeline."""
        self.files = files or {}
        """By pipeline: metrics that its file wants besides."""
        self._before: dict[str, Progress] = {}
        self._registry = CollectorRegistry(auto_describe=False)
        self._histograms = {
            spec.name: Histogram(
                spec.name, spec.help, ["pipeline"], registry=self._registry, buckets=_BUCKETS
            )
            for spec in METRICS
            if spec.kind == "histogram"
        }
        self._of_sqlflow = OfSqlflow(self.files, self._registry)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def take(self, at: Progress) -> None:
        """Take the progress of one pipeline."""
        before = self.newest.get(at.pipeline)
        self.newest[at.pipeline] = at
        if at.batch and (before is None or before.batch != at.batch):
            self._before[at.pipeline] = before or Progress(pipeline=at.pipeline)
            took = {
                "kaflow_processing_duration_seconds": at.batch_ms / 1000,
                "kaflow_sql_execution_duration_seconds": steps_of(at.phases)["sql"] / 1000,
            }
            for name, seconds in took.items():
                self._histograms[name].labels(at.pipeline).observe(seconds)
            self._of_sqlflow.take(at)

    def collect(self) -> Iterable[Metric]:
        """Yield every metric that is not a histogram, as prometheus_client wants it."""
        newest = list(self.newest.values())
        for spec in METRICS:
            if spec.kind == "histogram":
                continue
            family = _FAMILIES[spec.kind](spec.name, spec.help, labels=["pipeline", *spec.labels])
            for at in newest:
                for labels, value in spec.values(at):
                    family.add_metric([at.pipeline, *labels], value)
            yield family
        yield from of_plugins(newest)
        yield from of_nodes(self.files, self.pairs())
        yield from self._of_sqlflow.metrics(newest)

    def pairs(self) -> list[tuple[Progress, Progress]]:
        """Return the progress of each pipeline, and that before its last batch."""
        return [(at, self._before.get(name, at)) for name, at in list(self.newest.items())]

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
