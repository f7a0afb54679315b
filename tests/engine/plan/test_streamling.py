"""Files of Streamling: each example of its documents is read as it stands, and explained."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.sinks import ConnectorSink
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.project import read_project
from kaflow_engine.model.sources.hybrid_specs import HybridSourceSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.plan.planner.project import check_project

FIXTURES = Path(__file__).parents[2] / "fixtures" / "streamling"
WHOLE = sorted((FIXTURES / "seed").glob("*.yaml"))
PARTS = yaml.safe_load((FIXTURES / "parts.yaml").read_text())
CONFIG = Config.model_validate(
    {
        "postgres": {"connections": {"postgres_sink": {"url": "postgresql://u@localhost/d"}}},
        "clickhouse": {
            "connections": {
                "clickhouse_sink": {"url": "http://localhost:8123"},
                "clickhouse_source": {"url": "http://localhost:8123"},
            }
        },
    }
)


pytestmark = pytest.mark.usefixtures("example_plugins")


def loaded(path: Path, settings: dict[str, str] | None = None) -> PipelineSpec:
    config = CONFIG.model_copy(update={"vars": settings or {}})
    (checked,) = check_project([path], config, {}).pipelines
    assert checked.mistakes == ()
    assert checked.spec is not None
    return checked.spec


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_whole_example_is_read_and_explained(path: Path) -> None:
    spec = loaded(path)
    assert spec.name == path.stem
    assert draw(explain(spec, CONFIG))


@pytest.mark.parametrize("row", PARTS, ids=lambda row: row["title"])
def test_a_part_is_read_and_explained(row: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "part.yaml"
    path.write_text(row["part"] + row.get("line", "") + "\n" + row["rest"])
    spec = loaded(path, row.get("settings"))
    assert draw(explain(spec, CONFIG))


SOURCE = {"type": "kafka", "topic": "t", "data_format": "json", "primary_key": "id"}
DATABASE = {"from": "orders", "schema": "a"}
SUMS = {"landing_table": "l", "agg_table": "b", "aggregate": {"n": {"fn": "count"}}}


@pytest.mark.parametrize(
    ("sink", "query"),
    [
        ({"type": "postgres", "table": "b", "primary_key": ["id", "shop"]}, None),
        (
            {"type": "postgres_aggregate", "primary_key": "id", **SUMS}
            | {"group_by": {"shop": {"type": "text"}, "id": {}}},
            'SELECT CAST("shop" AS VARCHAR) AS "shop", "id" AS "id", count(*) AS "n" ',
        ),
    ],
    ids=["rows", "sums"],
)
def test_keys_of_several_columns(tmp_path: Path, sink: dict[str, Any], query: str | None) -> None:
    path = tmp_path / "p.yaml"
    source = {**SOURCE, "schema": {"id": "BIGINT", "shop": "VARCHAR"}}
    text = {"sources": {"orders": source}, "sinks": {"out": {**DATABASE, **sink}}}
    path.write_text(yaml.safe_dump(text, sort_keys=False))
    spec = loaded(path)
    columns = {"t": declared_columns(spec, "t") or ()}
    written, *_ = build_plan(spec, CONFIG, columns).plan.sinks
    assert isinstance(written, ConnectorSink)
    assert set(written.key_columns) == {"id", "shop"}
    assert query is None or query in (spec.writes[0].query or "")


@pytest.mark.parametrize(
    ("start", "handover"),
    [
        ("earliest", {"start_at": "earliest"}),
        ("latest", {"start_at": "latest"}),
        ("2026-01-01T00:00:00Z", {"time": datetime(2026, 1, 1, tzinfo=UTC)}),
    ],
)
def test_where_the_topic_of_a_hybrid_source_begins(
    tmp_path: Path, start: str, handover: dict[str, object]
) -> None:
    path = tmp_path / "p.yaml"
    live = {"source_type": "kafka", "topic": "t", "data_format": "json", "start_at": start}
    source = {
        "type": "hybrid",
        "primary_key": "id",
        "schema": {"id": "BIGINT"},
        "bounded_sources": [{"source_type": "clickhouse", "table_name": "a"}],
        "unbounded_source": live,
    }
    sinks = {"out": {"type": "blackhole", "from": "orders"}}
    path.write_text(yaml.safe_dump({"sources": {"orders": source}, "sinks": sinks}))
    found = loaded(path).sources["orders"]
    assert isinstance(found, HybridSourceSpec)
    assert found.handover.model_dump(exclude_none=True) == handover
    assert found.may_repeat is ("start_at" in handover)
    assert (found.primary_key, found.operation) == (("id",), "header:dbz.op")


def test_tables_without_a_topic_have_inserts_alone(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    source = {
        "type": "hybrid",
        "primary_key": "id",
        "schema": {"id": "BIGINT"},
        "bounded_sources": [{"source_type": "clickhouse", "table_name": name} for name in "ab"],
        "unbounded_source": {"source_type": "kafka", "topic": "t", "data_format": "json"},
    }
    sinks = {"out": {"type": "blackhole", "from": "orders"}}
    path.write_text(yaml.safe_dump({"sources": {"orders": source}, "sinks": sinks}))
    found = loaded(path, {"streamling.job_mode": "true"}).sources["orders"]
    assert (found.primary_key, found.operation) == ((), None)


def test_what_is_read_of_the_parts_of_a_hybrid_source(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    table = {"source_type": "clickhouse", "table_name": "a", "start_at": 5}
    live = {"source_type": "kafka", "topic": "t", "data_format": "json", "filter": "id > 7"}
    source = {
        "type": "hybrid",
        "schema": {"id": "BIGINT"},
        "bounded_sources": [table],
        "unbounded_source": live,
    }
    sinks = {"out": {"type": "blackhole", "from": "orders"}}
    path.write_text(yaml.safe_dump({"sources": {"orders": source}, "sinks": sinks}))
    found = loaded(path)
    hybrid = found.sources["orders.all"]
    assert isinstance(hybrid, HybridSourceSpec)
    (phase,) = hybrid.phases
    assert phase.model_dump(include={"table_name", "start_at"}) == {
        "table_name": "a",
        "start_at": "5",
    }
    assert "WHERE _partition = 0 OR (id > 7)" in str(found.relations["orders"])


def test_topics_may_be_written_to_another_cluster(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    sinks = {"out": {"type": "kafka", "from": "orders", "topic": "o", "data_format": "json"}}
    path.write_text(yaml.safe_dump({"sources": {"orders": SOURCE}, "sinks": sinks}))
    prefix = "STREAMLING__KAFKA_"
    config = load_config(None, {f"{prefix}SOURCE__BROKERS": "a:1", f"{prefix}SINK__BROKERS": "b:1"})
    (checked,) = check_project([path], config, {}).pipelines
    assert checked.mistakes == ()
    assert checked.spec is not None
    (write,) = checked.spec.writes
    assert (write.output.topic, write.output.cluster) == ("o", "kafka_sink")


def test_rows_with_a_key_ask_a_table_of_postgres(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    topic = {"type": "kafka", "topic": "t", "primary_key": "id", "data_format": "json"}
    sources = {"orders": {**topic, "schema": {"id": "BIGINT", "name": "VARCHAR"}}}
    known = {"type": "dynamic_table", "backend_type": "Postgres", "backend_entity_name": "known"}
    asked = "SELECT * FROM orders WHERE dynamic_table_check('known', name)"
    transforms = {"known": known, "some": {"type": "sql", "sql": asked, "primary_key": "id"}}
    sinks = {"out": {"type": "postgres", "from": "some", "schema": "s", "table": "t"}}
    file = {"sources": sources, "transforms": transforms, "sinks": sinks}
    path.write_text(yaml.safe_dump(file))
    assert draw(explain(loaded(path), CONFIG))


def test_a_file_may_be_json(tmp_path: Path) -> None:
    whole = FIXTURES / "seed" / "quick_start.yaml"
    path = tmp_path / "quick_start.json"
    path.write_text(json.dumps(yaml.safe_load(whole.read_text())))
    found, same = loaded(path), loaded(whole)
    assert found.model_dump() == same.model_dump()
    (in_folder,) = read_project([tmp_path], CONFIG, {}).pipelines
    assert in_folder.name == "quick_start"


def test_labels_are_shown(tmp_path: Path) -> None:
    (row,) = (row for row in PARTS if row["title"] == "labels")
    path = tmp_path / "p.yaml"
    path.write_text(row["part"] + row["rest"])
    assert loaded(path).meta == {
        "raw_events.tier": "critical",
        "raw_events.dataset": "app.events",
        "raw_events.team": "platform",
    }


def test_a_json_file_that_is_no_topology_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {}}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "large.json").write_text('{"sinks": {}, "rows": [' + "1, " * 400_000 + "1]}")
    (tmp_path / "p.yaml").write_text((FIXTURES / "seed" / "quick_start.yaml").read_text())
    found = read_project([tmp_path], CONFIG, {})
    assert [each.name for each in found.pipelines] == ["p"]
    assert found.mistakes == ()


@pytest.mark.parametrize("name", ["broken.json", "broken.yaml"])
def test_a_named_file_that_cannot_be_read_is_a_mistake(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{")
    (mistake,) = read_project([tmp_path / name], CONFIG, {}).mistakes
    assert isinstance(mistake, ModelError)


@pytest.mark.parametrize("spelled", ["postgres", "Postgres", "InMemory", "in-memory", "in_memory"])
def test_each_spelling_of_a_backend_is_read(tmp_path: Path, spelled: str) -> None:
    path = tmp_path / "p.yaml"
    seen = {"type": "dynamic_table", "backend_type": spelled, "backend_entity_name": "e"}
    asks = "SELECT id FROM orders WHERE dynamic_table_check('seen', id::VARCHAR)"
    transforms = {
        "seen": {**seen, "sql": "SELECT id::VARCHAR AS id FROM orders"},
        "known": {"type": "sql", "primary_key": "id", "sql": asks},
    }
    source = {**SOURCE, "schema": {"id": "BIGINT"}}
    sinks = {"out": {"type": "print", "from": "known"}}
    whole = {"sources": {"orders": source}, "transforms": transforms, "sinks": sinks}
    path.write_text(yaml.safe_dump(whole))
    assert loaded(path).relations["seen"].type == "dynamic_table"


def test_a_table_of_clickhouse_may_call_its_version_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    sink = {"type": "clickhouse", "from": "orders", "table": "t", "primary_key": ["id", "shop"]}
    sinks = {"out": {**sink, "version_column_name": "insert_time"}}
    source = {**SOURCE, "schema": {"id": "BIGINT", "shop": "VARCHAR"}}
    path.write_text(yaml.safe_dump({"sources": {"orders": source}, "sinks": sinks}))
    (write,) = loaded(path).writes
    settings = write.sink.settings
    assert (settings["version_column"], settings["deleted_column"]) == ("insert_time", "is_deleted")
