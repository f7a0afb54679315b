"""Metrics of Streamling: names and labels of nodes, and their values, as rows of data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kaflow_engine.measures import Measure, Series
from kaflow_engine.model.brought.nodes import Counted, FileMetrics
from kaflow_engine.model.streamling.front_end import load_streamling
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.metrics.of_nodes import NODE_METRICS
from kaflow_engine.telemetry.progress import Progress
from tests.page import DOCS

ROWS = yaml.safe_load(
    (Path(__file__).parents[2] / "fixtures" / "streamling" / "metrics.yaml").read_text("utf-8")
)
SCRIPT = (("kind", "script"), ("transform", "scored"))
AT = Progress(
    pipeline="shop",
    batch=7,
    batches=6,
    batch_end=12_000,
    spent={"input": 1_000.0, "sql": 4_000.0, "state_read": 500.0, "produce": 2_000.0},
    paused=12.0,
    empty_batches=3,
    empty_streak=2,
    written={"blackhole:seen": 40, "postgres:postgres_sink.app.orders": 60},
    measured=(
        (Series("count", "source_records", (("topic", "app.events"),)), Measure(800)),
        (Series("time", "transform", SCRIPT), Measure(1.5, 4)),
        (Series("count", "transform_rows", SCRIPT), Measure(90)),
        (Series("count", "transform_results", SCRIPT), Measure(87)),
        (
            Series("time", "sink", (("output", "postgres:postgres_sink.app.orders"),)),
            Measure(0.7, 3),
        ),
    ),
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, FileMetrics]:
    path = tmp_path / "shop.yaml"
    path.write_text(ROWS["file"])
    settings = {
        "streamling.application_id": "app_1",
        "streamling.open_telemetry_metrics.global_tags": "environment:production, image-tag:v1:2,x",
    }
    return {"shop": load_streamling(path, {}, settings=settings).file_metrics}


def samples(files: dict[str, FileMetrics], *progress: Progress) -> dict[tuple[str, str], float]:
    metrics = Metrics(["shop"], files)
    for each in progress:
        metrics.take(each)
    return {
        (sample.name, sample.labels["id"]): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name.startswith("streamling_")
    }


def shown(rows: Counted | None) -> str | None:
    into = "into " if rows and rows.coming_in else ""
    return None if rows is None else f"{into}{rows.kind} {rows.name}"


@pytest.mark.parametrize("place", range(len(ROWS["nodes"])), ids=lambda n: str(n))
def test_a_node(place: int, files: dict[str, FileMetrics]) -> None:
    node, wanted = files["shop"].nodes[place], ROWS["nodes"][place]
    tags = {"environment": "production", "image_tag": "v1:2"}
    assert node.labels == {**tags, **wanted["labels"], "service_instance_id": "app_1"}
    assert shown(node.rows) == wanted["rows"]
    assert len(files["shop"].nodes) == len(ROWS["nodes"])


@pytest.mark.parametrize("row", ROWS["samples"], ids=lambda row: f"{row[0]} {row[1]}")
def test_a_sample(row: Any, files: dict[str, FileMetrics]) -> None:
    before = replace(AT, batch=6, batch_end=10_000, measured=())
    name, node, value = row
    assert samples(files, before, AT).get((name, node)) == value


def test_labels_of_one_node_are_empty_on_the_others(files: dict[str, FileMetrics]) -> None:
    metrics = Metrics(["shop"], files)
    metrics.take(AT)
    text = metrics.text().decode()
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith("streamling_output_rows_total{") and 'tier="critical"' in line
    ]
    for label in ('dataset="app.events"', 'id="raw.events"', 'team=""', 'pipeline="shop"'):
        assert label in line


def test_other_pipelines_have_none() -> None:
    assert samples({}, AT) == {}


def test_the_page_names_each() -> None:
    text = DOCS.joinpath("from-streamling.md").read_text()
    assert [m.name for m in NODE_METRICS if f"`{m.name}`" not in text] == []
