"""Traces and metrics by OpenTelemetry's protocol: a span for each batch and each stage in it.

The libraries load a lot, so they are imported only where an endpoint is set.
"""

import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from kaflow_engine.masking import masked
from kaflow_engine.model.config import OtlpConfig
from kaflow_engine.telemetry.log_context import naming_spans
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.metrics.of_nodes import (
    DELTA,
    NODE_METRICS,
    NodeMetric,
    labels_of,
    nodes_of,
)
from kaflow_engine.telemetry.metrics.spec import MetricSpec
from kaflow_engine.telemetry.metrics.table import METRICS
from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.traces import SpanIds, ids_of_batch, is_sent, span_of

if TYPE_CHECKING:
    from opentelemetry.metrics import Observation
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.trace import Link

LOGGER = logging.getLogger("kaflow.telemetry")

_LAST_S = 5.0
_NS = 1_000_000


@contextmanager
def export(config: OtlpConfig, metrics: Metrics) -> Generator[Callable[[Progress], None]]:
    """Send traces and metrics while the block runs; yields what is told of every change.

    Without an endpoint, in the configuration or in `OTEL_EXPORTER_OTLP_ENDPOINT`, nothing is sent.
    A receiver that does not answer is a warning of the OpenTelemetry library, and costs nothing.
    """
    if not is_sent(config):
        yield lambda progress: None
        return
    try:
        sender = _Sender(config, metrics)
    except Exception as error:
        LOGGER.warning("traces and metrics are not sent: %s", masked("", str(error)))
        yield lambda progress: None
        return
    try:
        with naming_spans(sender.spans.ids):
            yield sender.spans.take
    finally:
        try:
            sender.close()
        except Exception as error:
            LOGGER.warning("the last traces and metrics were not sent: %s", masked("", str(error)))


class _Sender:
    """What collects and sends."""

    def __init__(self, config: OtlpConfig, metrics: Metrics) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        about = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "kaflow")})
        spans, numbers = _exporters(config)
        wanted: ContextVar[SpanIds | None] = ContextVar("kaflow_span", default=None)
        self._traces = TracerProvider(resource=about, id_generator=_generator(wanted))
        self._traces.add_span_processor(BatchSpanProcessor(spans))
        reader = PeriodicExportingMetricReader(numbers, export_interval_millis=config.interval)
        self._meters = MeterProvider([reader], resource=about)
        observe(self._meters.get_meter("kaflow"), metrics)
        self.spans = _Spans(self._traces.get_tracer("kaflow"), wanted)

    def close(self) -> None:
        """Send what is left; a receiver that is away must not hold up the end."""
        self._traces.force_flush(int(_LAST_S * 1000))
        self._traces.shutdown()
        self._meters.shutdown()


def _generator(wanted: ContextVar[SpanIds | None]) -> "IdGenerator":
    """Return what gives a span the ids that are wanted in this thread, and others any."""
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            ids = wanted.get()
            return super().generate_trace_id() if ids is None else int(ids.trace_id, 16)

        def generate_span_id(self) -> int:
            ids = wanted.get()
            return super().generate_span_id() if ids is None else int(ids.span_id, 16)

    return Ids()


def _exporters(config: OtlpConfig) -> "tuple[SpanExporter, MetricExporter]":
    headers, timeout = dict(config.headers) or None, _LAST_S
    if config.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import metric_exporter, trace_exporter

        plain = None if config.endpoint is None else config.endpoint.startswith("http://")
        more: dict[str, Any] = {"headers": headers, "timeout": timeout, "insecure": plain}
        return (
            trace_exporter.OTLPSpanExporter(endpoint=config.endpoint, **more),
            metric_exporter.OTLPMetricExporter(endpoint=config.endpoint, **more),
        )
    from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
    from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_traces

    base = None if config.endpoint is None else config.endpoint.rstrip("/")
    more = {"headers": headers, "timeout": timeout}
    return (
        http_traces.OTLPSpanExporter(endpoint=base and f"{base}/v1/traces", **more),
        http_metrics.OTLPMetricExporter(endpoint=base and f"{base}/v1/metrics", **more),
    )


def observe(meter: Any, metrics: Metrics) -> None:
    """Offer every metric that is not a histogram; those are in the spans' durations."""
    for spec in METRICS:
        if spec.kind == "histogram":
            continue
        make = meter.create_observable_gauge
        if spec.kind == "counter":
            make = meter.create_observable_counter
        make(spec.name, callbacks=[_reader(spec, metrics)], description=spec.help)
    for prefix in dict.fromkeys(file.prefix for file in metrics.files.values() if file.nodes):
        for node in NODE_METRICS:
            if node.kind == "summary":
                continue
            make = meter.create_observable_gauge
            if node.kind == "counter":
                make = meter.create_observable_counter
            read = _reader_of_nodes(prefix, node, metrics)
            make(prefix + node.name, callbacks=[read], description=node.help)
        delta = _delta(_reader_of_nodes(prefix, NODE_METRICS[0], metrics))
        about = "Rows that left a node since they were sent last."
        meter.create_observable_gauge(prefix + DELTA, callbacks=[delta], description=about)


def _reader(spec: MetricSpec, metrics: Metrics) -> "Callable[[Any], Iterable[Observation]]":
    from opentelemetry.metrics import Observation

    def read(options: Any) -> "Iterable[Observation]":
        for at in list(metrics.newest.values()):
            for labels, value in spec.values(at):
                names = ("pipeline", *spec.labels)
                yield Observation(value, dict(zip(names, (at.pipeline, *labels), strict=True)))

    return read


def _reader_of_nodes(
    prefix: str, metric: NodeMetric, metrics: Metrics
) -> "Callable[[Any], Iterable[Observation]]":
    from opentelemetry.metrics import Observation

    def read(options: Any) -> "Iterable[Observation]":
        for of, node in nodes_of(metrics.files, metrics.pairs()):
            value = metric.value(node) if of == prefix else None
            if isinstance(value, int | float):
                yield Observation(value, labels_of(node))

    return read


def _delta(
    total: "Callable[[Any], Iterable[Observation]]",
) -> "Callable[[Any], Iterable[Observation]]":
    from opentelemetry.metrics import Observation

    sent: dict[str, float] = {}

    def read(options: Any) -> "Iterable[Observation]":
        for each in total(options):
            series = str(each.attributes)
            yield Observation(each.value - sent.get(series, 0.0), each.attributes)
            sent[series] = each.value

    return read


class _Spans:
    """Makes spans of batches that are over; used by the threads of pipelines."""

    def __init__(self, tracer: Any, wanted: ContextVar[SpanIds | None]) -> None:
        self._tracer = tracer
        self._wanted = wanted
        self._seen: dict[str, int] = {}
        self.ids = partial(ids_of_batch, os.urandom(16))

    def take(self, at: Progress) -> None:
        """Take the progress of one pipeline; telemetry never stops it."""
        if not at.batch or self._seen.get(at.pipeline) == at.batch or at.batch_end is None:
            return
        self._seen[at.pipeline] = at.batch
        try:
            self._batch(at, at.batch_end)
        except Exception as error:
            LOGGER.warning("no span for batch %d of '%s': %s", at.batch, at.pipeline, error)

    def _batch(self, at: Progress, end: int) -> None:
        from opentelemetry.trace import set_span_in_context

        start = end - int(at.batch_ms)
        about: dict[str, Any] = {"kaflow.pipeline": at.pipeline, "kaflow.batch": at.batch}
        token = self._wanted.set(self.ids(at.pipeline, at.run, at.batch))
        try:
            batch = self._tracer.start_span(
                "batch",
                start_time=start * _NS,
                attributes=about
                | {"kaflow.records": at.batch_records, "kaflow.lag": sum(at.lag.values())}
                | {f"kaflow.phase.{name}": round(ms, 1) for name, ms in at.phases.items()},
                links=list(_links(at.links)),
            )
        finally:
            self._wanted.reset(token)
        inside = set_span_in_context(batch)
        for stage in at.stages:
            span = self._tracer.start_span(
                stage.name,
                inside,
                start_time=stage.start * _NS,
                attributes=about | {"kaflow.rows": stage.rows, "kaflow.tasks": stage.tasks},
            )
            span.end(stage.end * _NS)
        batch.end(end * _NS)


def _links(traceparents: Iterable[str]) -> "Iterator[Link]":
    from opentelemetry.trace import Link, SpanContext

    for each in traceparents:
        span = span_of(each)
        assert span is not None
        yield Link(SpanContext(int(span.trace_id, 16), int(span.span_id, 16), is_remote=True))
