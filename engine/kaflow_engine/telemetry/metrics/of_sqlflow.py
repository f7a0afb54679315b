"""Metrics of pipelines under the names of SQLFlow, for files of its own.

They are ours, asked for differently, with the label `pipeline` besides.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kaflow_engine.model.brought.nodes import FileMetrics
from kaflow_engine.telemetry.metrics.spec import MetricSpec
from kaflow_engine.telemetry.metrics.table import METRICS
from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.steps import steps_of

_BUCKETS = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_OURS: Mapping[str, MetricSpec] = {spec.name: spec for spec in METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """One of theirs."""

    name: str
    ours: str
    labels: tuple[str, ...] = ()
    """What it calls the labels of ours, the last of them where they are fewer."""
    kind: type[CounterMetricFamily | GaugeMetricFamily] = CounterMetricFamily


_NAMES = (
    _Named(name="message_count_messages", ours="kaflow_source_records_total", labels=("source",)),
    _Named(name="error_count", ours="kaflow_dead_letters_total"),
    _Named(name="sink_flush_count_flushes", ours="kaflow_sink_deliveries_total", labels=("sink",)),
    _Named(name="sink_rows_written", ours="kaflow_rows_delivered_total"),
    _Named(
        name="consumer_lag_messages",
        ours="kaflow_lag_records",
        labels=("topic",),
        kind=GaugeMetricFamily,
    ),
    _Named(name="webhook_requests", ours="kaflow_receiver_requests_total", labels=("status_code",)),
    _Named(name="window_late_rows", ours="kaflow_late_rows_total"),
    _Named(name="state_db_size_bytes", ours="kaflow_state_size_bytes", kind=GaugeMetricFamily),
)


class OfSqlflow:
    """What files of SQLFlow are measured by besides."""

    def __init__(self, files: Mapping[str, FileMetrics], registry: CollectorRegistry) -> None:
        """Begin with nothing.

        Args:
            files: By pipeline.
            registry: Takes histograms, where there is such a file.
        """
        self._names = {name for name, file in files.items() if file.of_pipelines == "sqlflow"}
        self._seconds = {
            name: Histogram(name, text, ["pipeline"], registry=registry, buckets=_BUCKETS)
            for name, text in (
                ("batch_processing_latency_seconds", "Duration of batches of the engine."),
                ("source_read_latency_seconds", "Of each, the reading of its messages."),
                ("sink_flush_latency_seconds", "Of each, the writing of its rows."),
            )
            if self._names
        }

    def take(self, at: Progress) -> None:
        """Take a batch that has ended."""
        if at.pipeline not in self._names:
            return
        steps = steps_of(at.phases)
        took = {
            "batch_processing_latency_seconds": at.batch_ms,
            "source_read_latency_seconds": steps["input"],
            "sink_flush_latency_seconds": steps["produce"],
        }
        for name, milliseconds in took.items():
            self._seconds[name].labels(at.pipeline).observe(milliseconds / 1000)

    def metrics(self, newest: Iterable[Progress]) -> Iterator[Metric]:
        """Yield the others, as prometheus_client wants them."""
        mine = [at for at in newest if at.pipeline in self._names]
        for named in _NAMES if mine else ():
            ours = _OURS[named.ours]
            family = named.kind(named.name, ours.help, labels=["pipeline", *named.labels])
            for at in mine:
                values: dict[tuple[str, ...], float] = {}
                for labels, value in ours.values(at):
                    own = labels[len(labels) - len(named.labels) :]
                    values[own] = values.get(own, 0) + value
                for own, value in values.items():
                    family.add_metric([at.pipeline, *own], value)
            yield family
