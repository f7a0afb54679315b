"""Metrics of sources, receivers, journals, transforms and sinks, one by one."""

from typing import Literal

from kaflow_engine.telemetry.metrics.spec import MetricSpec, Values
from kaflow_engine.telemetry.progress import Progress


def _measured(
    name: str, text: str, labels: tuple[str, ...], series: str, *, by: Literal["value", "times"]
) -> MetricSpec:
    """Return a metric of what tasks or receivers measure.

    Args:
        name: Of the metric.
        text: Its help.
        labels: Of the metric, and of the series.
        series: Its name.
        by: What of it is asked for.
    """

    def values(at: Progress) -> Values:
        for (_, called, own), measure in (*at.measured, *at.received):
            if called == series:
                known = dict(own)
                yield tuple(known[label] for label in labels), getattr(measure, by)

    kind = "gauge" if series.startswith("journal_") else "counter"
    return MetricSpec(name, kind, text, labels, values)


MEASURED: tuple[MetricSpec, ...] = (
    _measured(
        "kaflow_source_records_total",
        "Records that this process has read of a topic or source.",
        ("topic",),
        "source_records",
        by="value",
    ),
    _measured(
        "kaflow_source_bytes_total",
        "Bytes of their keys, values and headers.",
        ("topic",),
        "source_bytes",
        by="value",
    ),
    _measured(
        "kaflow_receiver_records_total",
        "Records that a receiver has written down in this process.",
        ("source",),
        "receiver_records",
        by="value",
    ),
    _measured(
        "kaflow_receiver_bytes_total",
        "Bytes of their values.",
        ("source",),
        "receiver_bytes",
        by="value",
    ),
    _measured(
        "kaflow_receiver_requests_total",
        "Requests of webhooks, and those of polled URLs, by the status of the answer.",
        ("source", "status"),
        "receiver_requests",
        by="value",
    ),
    _measured(
        "kaflow_receiver_full_total",
        "Times that a receiver took nothing because the pipeline is behind.",
        ("source",),
        "receiver_full",
        by="value",
    ),
    _measured(
        "kaflow_receiver_failures_total",
        "Times that a receiver failed and began again.",
        ("source",),
        "receiver_failures",
        by="value",
    ),
    _measured(
        "kaflow_journal_records",
        "Records that were ever written to a journal.",
        ("source",),
        "journal_records",
        by="value",
    ),
    _measured(
        "kaflow_journal_waiting_records",
        "Records of it that the pipeline has not read yet.",
        ("source",),
        "journal_waiting",
        by="value",
    ),
    _measured(
        "kaflow_journal_size_bytes",
        "Bytes of its files.",
        ("source",),
        "journal_bytes",
        by="value",
    ),
    _measured(
        "kaflow_transform_calls_total",
        "Calls of a transform in this process.",
        ("transform", "kind"),
        "transform",
        by="times",
    ),
    _measured(
        "kaflow_transform_seconds_total",
        "Seconds that they took.",
        ("transform", "kind"),
        "transform",
        by="value",
    ),
    _measured(
        "kaflow_transform_rows_total",
        "Rows that it was given.",
        ("transform", "kind"),
        "transform_rows",
        by="value",
    ),
    _measured(
        "kaflow_transform_results_total",
        "Rows that it gave.",
        ("transform", "kind"),
        "transform_results",
        by="value",
    ),
    _measured(
        "kaflow_transform_failures_total",
        "Rows on which it failed: their records are dead letters.",
        ("transform", "kind"),
        "transform_failures",
        by="value",
    ),
    _measured(
        "kaflow_handler_requests_total",
        "Requests of a handler: taken, refused or retried, and the class of the answer's status.",
        ("transform", "outcome", "status"),
        "handler_requests",
        by="value",
    ),
    _measured(
        "kaflow_sink_deliveries_total",
        "Deliveries of tasks to an output; all topics together are `records`.",
        ("output",),
        "sink",
        by="times",
    ),
    _measured(
        "kaflow_sink_seconds_total",
        "Seconds that they took.",
        ("output",),
        "sink",
        by="value",
    ),
    _measured(
        "kaflow_sink_refused_total",
        "Rows that an output refused: dead letters.",
        ("output",),
        "sink_refused",
        by="value",
    ),
)
"""Of what tasks and receivers measure: each has samples where there is such a thing."""
