"""Where positions of Streamling are that a file goes on from, and writes to."""

from pathlib import Path

import pytest
import yaml

from kaflow_engine.model.brought.positions import PositionParams
from kaflow_engine.model.streamling.front_end import load_streamling

TOPIC = {"type": "kafka", "topic": "shop.orders", "primary_key": "id"}
SOURCES = {
    "orders": TOPIC,
    "again": TOPIC,
    "users": {**TOPIC, "topic": "shop.users"},
    "drawn": {"type": "basic_plugin.random_source"},
}
READERS = (("shop.orders", ("orders", "again")), ("shop.users", ("users",)))
BACKEND, GROUP = "state_backend.backend_type", "kafka_source.consumer_group_id"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({BACKEND: "InMemory"}, None),
        ({BACKEND: "Sqlite"}, PositionParams(readers=READERS, namespace="p", table="sqlite")),
        (
            {BACKEND: "postgres", "application_id": "shop"},
            PositionParams(readers=READERS, namespace="shop", table="postgres"),
        ),
        ({GROUP: "g"}, PositionParams(readers=READERS, namespace="p", group="g")),
        (
            {BACKEND: "Postgres", GROUP: "g"},
            PositionParams(readers=READERS, namespace="p", table="postgres", group="g"),
        ),
    ],
)
def test_positions(
    settings: dict[str, str], expected: PositionParams | None, tmp_path: Path
) -> None:
    path = tmp_path / "p.yaml"
    sinks = {f"out_{name}": {"type": "blackhole", "from": name} for name in SOURCES}
    path.write_text(yaml.safe_dump({"sources": SOURCES, "sinks": sinks}, sort_keys=False))
    said = {f"streamling.{name}": text for name, text in settings.items()}
    assert load_streamling(path, {}, settings=said).positions == expected


def test_a_file_without_topics_has_none(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    sinks = {"out": {"type": "blackhole", "from": "drawn"}}
    path.write_text(yaml.safe_dump({"sources": {"drawn": SOURCES["drawn"]}, "sinks": sinks}))
    found = load_streamling(path, {}, settings={f"streamling.{BACKEND}": "Postgres"})
    assert found.positions is None
