"""States that are rescaled and dropped between runs: readers see what an unbroken run writes.

Without Spark: the supervisor, the batch log, RocksDB and the transactional sink are the real ones.
"""

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.client import KafkaSettings
from tests.acceptance.bucket_here import Store
from tests.acceptance.crash_here import Order
from tests.acceptance.crash_pipeline import create_outputs, delivered, load_topics, log_of

pytestmark = pytest.mark.kafka

EVENTS = 240


class World:
    """Input topics, and pipelines over them."""

    def __init__(self, broker, forks, path: Path) -> None:
        self.kafka = KafkaSettings.of([broker.bootstrap])
        self._forks, self.path = forks, path
        load_topics(self.kafka, "states", EVENTS)
        self._order = Order(name="", inputs="states", broker=broker.bootstrap, path=str(path))

    def create(self, name: str) -> str:
        """Create what a pipeline writes."""
        create_outputs(self.kafka, name)
        return name

    def run(self, name: str, crash_at: str = "", **more):
        """Run a pipeline until it has read everything, or is killed."""
        order = replace(self._order, name=name, crash_at=crash_at, **more)
        (end,) = self._forks.run([order])
        assert end.how == ("killed" if crash_at else "ended"), end
        return end

    def seen(self, name: str):
        """Return what readers of committed records see."""
        return delivered(self.kafka, name, log_of(self.path, name))

    def state(self, *arguments: str, code: int = 0, answer: str | None = None):
        """Run `kaflow state …`."""
        settings = [f"state.rocksdb.path={self.path}", f"kafka.brokers={self._order.broker}"]
        command = ["state", *arguments, *(part for each in settings for part in ("--set", each))]
        done = CliRunner().invoke(kaflow, command, input=answer)
        assert done.exit_code == code, done.output
        return done


@pytest.fixture(scope="module")
def world(broker, forks, tmp_path_factory):
    return World(broker, forks, tmp_path_factory.mktemp("states"))


@pytest.fixture(scope="module")
def unbroken(world):
    world.run(world.create("unbroken"))
    found = world.seen("unbroken")
    assert found.counters["emitted"] > 200
    return found


def test_a_state_that_is_rescaled_between_runs_gives_the_same_rows(world, unbroken):
    name = world.create("rescaled")
    world.run(name, "commit_logged:1")
    (batch,) = [
        s["batch"] for s in json.loads(world.state("ls", "--json").stdout) if s["id"] == name
    ]
    assert batch == 1
    told = world.state("rescale", name, "--partitions", "7").stdout
    assert told.startswith("rescaled: 2 → 7 partitions, ")
    assert told.endswith("entries, generation 2 behind batch 2\n")
    world.run(name, "committed:3")
    refused = world.state("rescale", name, "--partitions", "3", code=14).stderr
    assert "batch 3 of pipeline 'rescaled' was begun and is not done" in refused
    world.run(name, "commit_logged:3")
    done = json.loads(world.state("rescale", name, "--partitions", "3", "--json").stdout)
    assert (done["before"], done["partitions"], done["generation"]) == (7, 3, 3)
    world.run(name)
    assert world.seen(name) == unbroken
    assert json.loads(world.state("verify", name, "--json").stdout)["sound"]
    for pipeline in (name, "unbroken"):
        world.state("snapshot", pipeline)
    counts = [
        {(s["step"], s["side"]): s["entries"] for s in json.loads(found.stdout)}
        for found in (world.state("size", pipeline, "--json") for pipeline in (name, "unbroken"))
    ]
    assert counts[0] == counts[1]


@pytest.mark.services
@pytest.mark.parametrize("run_before", [False, True])
def test_a_machine_that_is_lost_after_a_rescale_is_replaced(world, unbroken, run_before):
    name = world.create(f"moved-{run_before}")
    with Store() as bucket:
        more = {"bucket": bucket.endpoint, "snapshots": "1ms"}
        world.run(name, "commit_logged:1", **more)
        world.state("rescale", name, "--partitions", "5")
        if run_before:
            world.run(name, "committed:4", **more)
        shutil.rmtree(world.path / name)
        assert world.run(name, **more).said == ""
    (state,) = [s for s in json.loads(world.state("ls", "--json").stdout) if s["id"] == name]
    # what only this machine knew is gone, and with it a rescale that no run has carried on
    assert (state["partitions"], state["generation"]) == ((5, 2) if run_before else (2, 1))
    assert world.seen(name) == unbroken


def test_a_state_that_was_dropped_begins_anew(world, unbroken):
    name = world.create("dropped")
    world.run(name, "commit_logged:2")
    kept = world.state("drop", name, code=1, answer="n\n")
    assert "state of pipeline 'dropped': " in kept.stderr
    assert "writes rows again that it has written before" in kept.stderr
    dropped = world.state("drop", name, "--yes").stdout
    assert dropped.startswith("dropped dropped, and ")
    assert not (world.path / name).exists()
    before = sum(map(len, world.seen(name).rows.values()))
    world.run(name)
    assert sum(map(len, world.seen(name).rows.values())) == before + sum(
        map(len, unbroken.rows.values())
    )


def test_what_is_left_of_a_state_that_was_lost_can_be_dropped(world):
    name = world.create("lost")
    world.run(name, "commit_logged:1")
    shutil.rmtree(world.path / name)
    assert "has delivered rows (up to batch 1)" in world.run(name).said
    shutil.rmtree(world.path / name)
    told = world.state("drop", name, answer="y\n")
    assert "no directory on this machine" in told.stderr
    assert world.run(name).said == ""
    assert "unknown state 'never'" in world.state("drop", "never", "--yes", code=10).stderr


def test_what_windows_wait_for_is_shown_and_rescaled(world):
    """Rows of windows have no record of their own: what is kept of them stands under their keys."""

    def begun(name):
        create_outputs(world.kafka, name, several=True)
        world.run(name, "commit_logged:2", pipeline="meetings")

    def finished(name):
        world.run(name, pipeline="meetings")
        assert json.loads(world.state("verify", name, "--json").stdout)["sound"]
        return delivered(world.kafka, name, log_of(world.path, name), several=True)

    begun("meeting")
    shown = json.loads(world.state("show", "meeting", "--json", "--limit", "9999").stdout)
    waiting = [row for row in shown if row["side"] == "waiting"]
    assert len(waiting) > 5
    assert {row["record"] for row in waiting} == {None}
    ages = {_time(row["expires"]) - _time(row["event_time"]) for row in waiting}
    assert ages == {timedelta(minutes=20 + 10)}  # `within`, and the delay of the windows
    sides = json.loads(world.state("size", "meeting", "--json").stdout)
    assert "rows of 'aggregate:meeting.out.rows#1', kept for later matches" in {
        side["what"] for side in sides
    }
    begun("meeting-7")
    world.state("rescale", "meeting-7", "--partitions", "7")
    assert finished("meeting-7") == finished("meeting")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
