"""The parts of a pipeline, which of them is the slowest, and what OpenTelemetry gets of nodes."""

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from kaflow_engine.measures import Measure, Series
from kaflow_engine.model.brought.nodes import Counted, FileMetrics, NodeMetrics
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.nodes import accounts_of, slowest
from kaflow_engine.telemetry.otlp import observe
from kaflow_engine.telemetry.progress import Progress
from tests.engine.telemetry.examples import FULL

TOPICS = (
    (Series("count", "source_records", (("topic", "a"),)), Measure(30)),
    (Series("count", "source_records", (("topic", "b"),)), Measure(10)),
    (Series("time", "sink", (("output", "records"),)), Measure(6.0, 2)),
    (Series("time", "sink", (("output", "postgres:t"),)), Measure(1.0, 5)),
)
WRITTEN = {"x": 20, "y": 10, "postgres:t": 5}


@pytest.mark.parametrize(
    ("at", "rows", "slow"),
    [
        (
            FULL,
            [
                ("source", "events", None, 800, 1.0, 12.0, 6.5),
                ("query", "queries", None, None, 2.5, 13.0, 2.0),
                ("transform", "scored", 90, 87, 1.5, 13.0, 2.0),
                ("state", "state", None, None, 0.5, 13.0, 2.0),
                ("sink", "out", 701, None, 2.5, 17.5, 0.0),
            ],
            "queries",
        ),
        (
            Progress(pipeline="p", spent={"input": 4_000.0}, measured=TOPICS, written=WRITTEN),
            [
                ("source", "a", None, 30, 3.0, 0.0, 0.0),
                ("source", "b", None, 10, 1.0, 0.0, 0.0),
                ("query", "queries", None, None, 0.0, 4.0, 0.0),
                ("sink", "x", 20, None, 4.0, 4.0, 0.0),
                ("sink", "y", 10, None, 2.0, 4.0, 0.0),
                ("sink", "postgres:t", 5, None, 1.0, 4.0, 0.0),
            ],
            "x",
        ),
        (Progress(pipeline="p"), [("query", "queries", None, None, 0.0, 0.0, 0.0)], None),
    ],
    ids=["one of each kind", "what topics share", "nothing yet"],
)
def test_the_parts_of_a_pipeline(at: Progress, rows: list[Any], slow: str | None) -> None:
    found = accounts_of(at)
    assert [
        (e.kind, e.name, e.rows_in, e.rows_out, e.seconds, e.idle, e.blocked) for e in found
    ] == rows
    busiest = slowest(found)
    assert (busiest and busiest.name) == slow


def test_deltas_add_up_to_the_total() -> None:
    source = NodeMetrics(
        labels={"id": "events", "tier": "critical"},
        kind="source",
        rows=Counted(kind="source", name="a"),
    )
    files = {"p": FileMetrics(prefix="other_", nodes=(source,))}
    metrics, reader = Metrics(["p"], files), InMemoryMetricReader()
    observe(MeterProvider([reader]).get_meter("kaflow"), metrics)
    sent: list[tuple[float, float]] = []
    for batch, records in enumerate((0, 30, 30, 100)):
        measured = ((TOPICS[0][0], Measure(records)),)
        metrics.take(replace(FULL, batch=batch, batch_end=batch * 1_000, measured=measured))
        data: Any = reader.get_metrics_data()
        scope = data.resource_metrics[0].scope_metrics[0]
        found = {metric.name: metric.data.data_points for metric in scope.metrics}
        (total,), (delta,) = found["other_output_rows_total"], found["other_output_rows_delta"]
        assert dict(delta.attributes) == {"pipeline": "p", "id": "events", "tier": "critical"}
        sent.append((total.value, delta.value))
    assert sent == [(0, 0), (30, 30), (30, 0), (100, 70)]
