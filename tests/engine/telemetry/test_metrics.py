"""Metrics: every name, with labels and values, and the table of them in the documentation."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kaflow_engine.measures import Measure, Series
from kaflow_engine.model.brought.nodes import FileMetrics
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.metrics.table import METRICS
from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.steps import STEPS
from tests.engine.telemetry.examples import FULL

ROOT = Path(__file__).parents[3]


def samples(*progress):
    metrics = Metrics()
    for each in progress:
        metrics.take(each)
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("kaflow_") and not sample.name.endswith("_created")
    }


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("kaflow_pipeline_state", ("running",), 1),
        ("kaflow_pipeline_state", ("failed",), 0),
        ("kaflow_verdict", ("compute bound",), 1),
        ("kaflow_verdict", ("sink bound",), 0),
        ("kaflow_events_processed_total", (), 800),
        ("kaflow_events_per_second", (), 99.5),
        ("kaflow_records", ("emitted",), 700),
        ("kaflow_records", ("filtered",), 0),
        ("kaflow_rows_delivered_total", (), 701),
        ("kaflow_dead_letters_total", (), 5),
        ("kaflow_source_records_total", ("events",), 800),
        ("kaflow_source_bytes_total", ("events",), 64_000),
        ("kaflow_receiver_records_total", ("hooks",), 40),
        ("kaflow_receiver_bytes_total", ("hooks",), 4_000),
        ("kaflow_receiver_requests_total", ("hooks", "401"), 2),
        ("kaflow_receiver_full_total", ("hooks",), 8),
        ("kaflow_receiver_failures_total", ("hooks",), 9),
        ("kaflow_journal_records", ("hooks",), 140),
        ("kaflow_journal_waiting_records", ("hooks",), 30),
        ("kaflow_journal_size_bytes", ("hooks",), 9_000),
        ("kaflow_transform_calls_total", ("handler", "scored"), 4),
        ("kaflow_transform_seconds_total", ("handler", "scored"), 1.5),
        ("kaflow_transform_rows_total", ("handler", "scored"), 90),
        ("kaflow_transform_results_total", ("handler", "scored"), 87),
        ("kaflow_transform_failures_total", ("handler", "scored"), 3),
        ("kaflow_handler_requests_total", ("scored", "retried", "5xx"), 6),
        ("kaflow_sink_deliveries_total", ("records",), 7),
        ("kaflow_sink_seconds_total", ("records",), 2.5),
        ("kaflow_sink_refused_total", ("records",), 1),
        ("kaflow_plugin_acme_seen_hits_total", ("b",), 12),
        ("kaflow_plugin_acme_seen_keys", (), 5),
        ("kaflow_plugin_acme_seen_call_seconds_sum", ("b",), 0.5),
        ("kaflow_plugin_acme_seen_call_seconds_count", ("b",), 2),
        ("kaflow_side_output_rows_total", ("acme.audit", "o"), 700),
        ("kaflow_side_output_missed_total", ("acme.audit", "o"), 9),
        ("kaflow_late_records_total", (), 2),
        ("kaflow_late_rows_total", (), 4),
        ("kaflow_lost_records_total", (), 3),
        ("kaflow_lag_records", ("events",), 30),
        ("kaflow_lag_seconds", ("profiles",), 0),
        ("kaflow_watermark_timestamp_seconds", (), 1_767_225_600),
        ("kaflow_watermark_delay_seconds", (), 60),
        ("kaflow_watermark_holder", ("1", "events"), 1),
        ("kaflow_join_lookups_total", ("profiles",), 200),
        ("kaflow_join_hits_total", ("profiles",), 150),
        ("kaflow_join_hit_rate", ("profiles",), 0.75),
        ("kaflow_waiting_rows", (), 60),
        ("kaflow_waiting_oldest_seconds", (), 600),
        ("kaflow_state_entries_total", ("1:profiles",), 5_000),
        ("kaflow_state_size_bytes", ("1:profiles",), 123_456),
        ("kaflow_state_evictions_total", (), 40),
        ("kaflow_batch_number", (), 7),
        ("kaflow_batch_records", (), 120),
        ("kaflow_batch_phase_seconds", ("sql",), 0.4),
        ("kaflow_busy_ratio", (), 0.75),
        ("kaflow_checkpoint_batch", (), 6),
        ("kaflow_checkpoint_timestamp_seconds", (), 1_767_225_000),
        ("kaflow_checkpoint_size_bytes", (), 654_321),
        ("kaflow_checkpoint_failures_total", (), 1),
        ("kaflow_failures", (), 0),
        ("kaflow_processing_duration_seconds_sum", (), 0.25),
        ("kaflow_processing_duration_seconds_count", (), 1),
        ("kaflow_sql_execution_duration_seconds_sum", (), 0.04),
    ],
)
def test_a_metric(name, labels, value):
    assert samples(FULL)[name, *sorted(("p", *labels))] == pytest.approx(value)


def test_every_metric_has_a_sample_and_nothing_else_is_served():
    found = {re.sub("_(sum|count|bucket)$", "", name) for name, *_ in samples(FULL)}
    found = {name for name in found if not name.startswith("kaflow_plugin_")}
    assert found == {spec.name for spec in METRICS}


def test_a_batch_is_observed_once():
    later = replace(FULL, batch=8, batch_ms=1_000.0)
    found = samples(FULL, replace(FULL, state="degraded"), later, later)
    assert found["kaflow_processing_duration_seconds_count", "p"] == 2
    assert found["kaflow_processing_duration_seconds_sum", "p"] == 1.25


def test_what_is_not_known_has_no_sample():
    found = samples(Progress(pipeline="p"))
    assert ("kaflow_events_processed_total", "p") in found
    assert ("kaflow_watermark_timestamp_seconds", "p") not in found
    assert ("kaflow_waiting_oldest_seconds", "p") not in found


def test_pipelines_stand_side_by_side():
    found = samples(FULL, replace(FULL, pipeline="q", batch=9))
    assert found["kaflow_batch_number", "p"] == 7
    assert found["kaflow_batch_number", "q"] == 9


def test_the_documentation_lists_every_metric():
    text = (ROOT / "engine" / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `(kaflow_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE)
    assert rows == [
        (m.name, m.kind, ", ".join(f"`{n}`" for n in ("pipeline", *m.labels)), m.help)
        for m in METRICS
    ]
    assert all(f"`{step}`" in text for step in STEPS)


def test_the_dashboard_asks_for_metrics_that_exist():
    text = (ROOT / "deploy" / "grafana" / "kaflow.json").read_text()
    panels = json.loads(text)["panels"]
    asked = [t["expr"] for panel in panels for t in panel.get("targets", ())]
    rules = (ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text()
    asked += re.findall(r"expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):", rules)
    assert len(asked) > 40
    known = {m.name for m in METRICS}
    known |= {f"{m.name}_{end}" for m in METRICS if m.kind == "histogram" for end in ("bucket",)}
    for query in asked:
        names = set(re.findall(r"kaflow_\w+", query))
        assert names, query
        assert names <= known, query


def test_a_file_of_sqlflow_is_measured_by_its_names_too():
    metrics = Metrics(["p", "other"], {"p": FileMetrics(of_pipelines="sqlflow")})
    measured = (
        (Series("count", "source_records", (("topic", "a"),)), Measure(30)),
        (Series("count", "source_records", (("topic", "b"),)), Measure(10)),
        (Series("time", "sink", (("output", "out"),)), Measure(6.0, 2)),
        (Series("count", "receiver_requests", (("source", "x"), ("status", "200"))), Measure(3)),
        (Series("count", "receiver_requests", (("source", "y"), ("status", "200"))), Measure(4)),
    )
    for name in ("p", "other"):
        metrics.take(
            Progress(
                pipeline=name, batch=1, batch_ms=250, measured=measured, lag={"a": 7}, letters=2
            )
        )
    found = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in metrics.text().decode().splitlines()
        if line[:1] != "#" and not line.startswith(("kaflow_", "process_"))
    }
    assert all('pipeline="p"' in series for series in found)
    assert {
        'message_count_messages_total{pipeline="p",source="a"}': 30,
        'message_count_messages_total{pipeline="p",source="b"}': 10,
        'error_count_total{pipeline="p"}': 2,
        'sink_flush_count_flushes_total{pipeline="p",sink="out"}': 2,
        'consumer_lag_messages{pipeline="p",topic="a"}': 7,
        'webhook_requests_total{pipeline="p",status_code="200"}': 7,
        'batch_processing_latency_seconds_count{pipeline="p"}': 1,
        'batch_processing_latency_seconds_sum{pipeline="p"}': 0.25,
    }.items() <= found.items()
