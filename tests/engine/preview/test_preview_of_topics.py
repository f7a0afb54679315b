"""A preview of topics of a real broker: rows as a run makes them, and no trace of it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings, open_admin, open_producer
from kaflow_engine.errors import SourceError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.project import load_one
from kaflow_engine.preview.preview import Asked, preview
from kaflow_engine.preview.rows import Shown
from kaflow_engine.testing.services.broker import Broker

pytestmark = pytest.mark.kafka

FILE = """
name: orders
relations:
  large: {{query: "SELECT id, customer FROM {t}.orders WHERE amount > 5"}}
query: SELECT l.id, c.tier FROM large l LEFT JOIN {t}.customers c ON l.customer = c.id
output: {{topic: {t}.out, key: id}}
state: {{dimensions: [{t}.customers]}}
topics:
  {t}.orders: {{columns: {{id: BIGINT, customer: VARCHAR, amount: DOUBLE}}}}
  {t}.customers: {{columns: {{id: VARCHAR, tier: VARCHAR}}}}
"""
SECONDS = 60.0
"""At most; a test ends as soon as it has its rows."""


class World:
    def __init__(self, broker: Broker, folder: Path, name: str) -> None:
        self.name, self.kafka = name, KafkaSettings.of([broker.bootstrap])
        self.folder = folder
        broker.create_topic(f"{name}.orders", 2)
        broker.create_topic(f"{name}.customers", 1)
        self.file = folder / "p.yaml"
        self.file.write_text(FILE.format(t=name))
        state = f"state: {{rocksdb: {{path: {folder}/state}}}}"
        text = f"kafka: {{brokers: ['{broker.bootstrap}']}}\n{state}"
        folder.joinpath("kaflow.yaml").write_text(text)
        self.send("customers", {"id": "ann", "tier": "gold"}, key="ann")
        self.send("orders", {"id": 1, "customer": "ann", "amount": 10})

    def send(self, topic: str, value: dict[str, Any], key: str | None = None) -> None:
        producer = open_producer(self.kafka).api
        producer.produce(f"{self.name}.{topic}", json.dumps(value).encode(), key)
        assert producer.flush(30) == 0

    def load(self) -> tuple[PipelineSpec, Config]:
        config = load_config(self.folder / "kaflow.yaml", {})
        return load_one([self.file], "orders", config, {}), config

    def trace(self) -> tuple[set[str], set[str], set[str]]:
        """Return topics of the test, groups of consumers that there are, and files."""
        admin = open_admin(self.kafka).api
        topics = {
            name
            for name in admin.list_topics(timeout=10).topics
            if self.name in name or "orders" in name
        }
        groups = {each.group_id for each in admin.list_consumer_groups().result(10).valid}
        return topics, groups, {str(each) for each in self.folder.rglob("*")}


@pytest.fixture
def world(broker: Broker, tmp_path: Path, unique: str) -> World:
    return World(broker, tmp_path, unique)


def data(rows: Iterator[Shown]) -> list[dict[str, Any]]:
    return [json.loads(each.line()) for each in rows]


def large(number: int) -> dict[str, Any]:
    row = {"id": number, "customer": "ann"}
    return {"node": "large", "kind": "relation", "op": "insert", "row": row}


def test_from_the_end_with_dimensions_and_without_a_trace(world: World) -> None:
    before = world.trace()
    spec, config = world.load()
    out = f"{world.name}.out"
    stop = Event()

    def heard(text: str) -> None:
        if text.startswith("1 record is"):  # where it begins is known now
            world.send("orders", {"id": 2, "customer": "ann", "amount": 7})
            world.send("orders", {"id": 3, "customer": "bob", "amount": 6})

    with closing(preview(spec, config, Asked(seconds=SECONDS, rows=4), stop, heard)) as rows:
        found = data(rows)
    assert sorted(found, key=str) == sorted(
        [
            large(2),
            {**large(3), "row": {"id": 3, "customer": "bob"}},
            {
                "node": out,
                "kind": "output",
                "op": "insert",
                "key": "2",
                "row": {"id": 2, "tier": "gold"},
            },
            {
                "node": out,
                "kind": "output",
                "op": "insert",
                "key": "3",
                "row": {"id": 3, "tier": None},
            },
        ],
        key=str,
    )
    assert world.trace() == before


def test_the_command_from_the_first_record_ends_at_its_rows(world: World) -> None:
    command = [sys.executable, "-m", "kaflow_engine.cli.main", "preview", "p.yaml"]
    options = ["--from", "earliest", "--node", "large", "--rows", "1"]
    done = subprocess.run(
        [*command, *options], cwd=world.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [large(1)]
    assert "1 row: large 1" in done.stderr


def test_ctrl_c_ends_it(world: World) -> None:
    command = [sys.executable, "-m", "kaflow_engine.cli.main", "preview", "p.yaml"]
    with subprocess.Popen(
        [*command, "--from", "earliest"], cwd=world.folder, stdout=-1, stderr=-1, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline()  # it reads
        running.send_signal(2)
        _, says = running.communicate(timeout=60)
    assert running.returncode == 0, says
    assert "large 1" in says
    assert "Traceback" not in says


def test_a_topic_that_is_not_there(world: World) -> None:
    world.file.write_text(
        FILE.format(t=world.name)
        .replace(f"FROM {world.name}.orders", f"FROM {world.name}.order")
        .replace(f"  {world.name}.orders:", f"  {world.name}.order:")
    )
    spec, config = world.load()
    with pytest.raises(SourceError, match=rf"p.yaml:5: no topic '{world.name}.order' at") as error:
        list(preview(spec, config, Asked(seconds=SECONDS), Event()))
    assert f"did you mean '{world.name}.orders'?" in str(error.value)
