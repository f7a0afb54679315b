"""A pipeline is renamed, gets a column and a dimension more, and at last its state is rebuilt."""
# pyright: basic

import json
import shutil

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.errors import StateError
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime.application import run_pipelines
from kaflow_engine.runtime.batch import runner as batches
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.store import LocalStore
from tests.acceptance.bucket_here import KEYS, NAME, Store

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

FILE = """
name: evolved
query: |
  SELECT e.id, e.n, d.name
  FROM evolved.events e
  LEFT JOIN evolved.names d ON e.id = d.id
output: {topic: evolved.out, key: id}
state: {dimensions: [evolved.names]}
topics:
  evolved.events: {columns: {id: VARCHAR, n: BIGINT}}
  evolved.names: {columns: {id: VARCHAR, name: VARCHAR, tier: VARCHAR}}
"""
RENAMED = (
    FILE.replace("name: evolved\n", "name: evolved_too\nid: evolved\n")
    .replace("d.name\n", "d.name, d.tier, p.city\n")
    .replace("d.id\n", "d.id\n  LEFT JOIN evolved.places p ON e.id = p.id\n")
    .replace("[evolved.names]", "[evolved.names, evolved.places]")
    + "  evolved.places: {columns: {id: VARCHAR, city: VARCHAR}}\n"
)
REBUILT = RENAMED.replace("evolved.names d", "(SELECT * FROM evolved.names WHERE tier <> 'x') d")


class World:
    """A pipeline file, the topics it reads, and the rows that came so far."""

    def __init__(self, broker, spark, folder, bucket):
        self.kafka = KafkaSettings.of([broker.bootstrap])
        self.spark, self.folder = spark, folder
        keys = {"accessKey": KEYS["access_key"], "secretKey": KEYS["secret_key"]}
        where = {"enabled": True, "bucket": NAME, "endpoint": bucket.endpoint}
        s3 = {**where, **keys, "region": KEYS["region"]}
        checkpoint = {"interval": "1ms", "s3": s3}
        self.config = Config.model_validate(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(folder / "state"), "checkpoint": checkpoint}},
            }
        )
        self.directory = folder / "state" / "evolved"
        self.arguments = ["--set", f"kafka.brokers={broker.bootstrap}"]
        self.arguments += ["--set", f"state.rocksdb.path={folder / 'state'}"]
        for topic in ("events", "names", "places"):
            create_topic(self.kafka, f"evolved.{topic}", 2)

    def send(self, topic, *values):
        producer = open_producer(self.kafka, **{"enable.idempotence": True}).api
        for value in values:
            key = value["id"].encode()
            producer.produce(f"evolved.{topic}", json.dumps(value).encode(), key)
        assert producer.flush(30) == 0

    def write(self, text):
        (self.folder / "p.yaml").write_text(text)

    def run(self):
        """Read all that the topics hold; return the counters."""
        planned = prepare([load_pipeline(self.folder / "p.yaml")], self.config)
        plans = [each.plan for each in planned]
        done = run_pipelines(
            plans, self.config, until_caught_up=True, spark=self.spark, change=change
        )
        return done.pipelines[plans[0].name].counters

    def plan(self, *options, code=0):
        command = ["plan", str(self.folder / "p.yaml"), *options, *self.arguments]
        done = CliRunner().invoke(kaflow, command)
        assert done.exit_code == code, done.output
        return done.stdout

    def rows(self):
        values = read_all(self.kafka, "evolved.out")["value"].to_pylist()
        return sorted((json.loads(value) for value in values), key=lambda row: row["n"])

    @property
    def state_id(self):
        return BatchLog(LocalStore(self.directory)).load_state().state_id


@pytest.fixture(scope="module")
def world(broker, spark, tmp_path_factory):
    with Store() as bucket:
        yield World(broker, spark, tmp_path_factory.mktemp("evolved"), bucket)


@pytest.fixture(scope="module")
def began(world):
    world.write(FILE)
    world.send("names", *({"id": i, "name": i * 2, "tier": "gold"} for i in "ab"))
    world.send("events", {"id": "a", "n": 0}, {"id": "b", "n": 1}, {"id": "c", "n": 2})
    world.run()
    return world.state_id


@pytest.fixture(scope="module")
def renamed(world, began):
    """The file has another name, a column and a dimension more, and there are more records."""
    world.write(RENAMED)
    told = world.plan()
    world.send("names", {"id": "b", "name": "bb", "tier": "blue"})
    world.send("names", {"id": "c", "name": "cc", "tier": "x"})
    world.send("places", {"id": "a", "city": "Bonn"}, {"id": "b", "city": "Rome"})
    world.send("events", {"id": "a", "n": 3}, {"id": "b", "n": 4}, {"id": "c", "n": 5})
    return told, world.run()


def test_a_renamed_pipeline_with_another_column_goes_on_with_its_state(world, began, renamed):
    told, counters = renamed
    assert told.startswith("restart, state migrated  evolved_too  batch ")
    assert "entries of dimension 'd' have NULL for column 'tier' if they are from before" in told
    assert "dimension 'p' is loaded to its end first" in told
    assert world.state_id == began
    assert counters["emitted"] == 6
    assert world.rows() == [
        {"id": "a", "n": 0, "name": "aa"},
        {"id": "b", "n": 1, "name": "bb"},
        {"id": "c", "n": 2, "name": None},
        {"id": "a", "n": 3, "name": "aa", "tier": None, "city": "Bonn"},
        {"id": "b", "n": 4, "name": "bb", "tier": "blue", "city": "Rome"},
        {"id": "c", "n": 5, "name": "cc", "tier": "x", "city": None},
    ]
    assert world.plan().startswith("unchanged  evolved_too")
    assert ControlTopic(world.kafka, "evolved").states() == {(began, 1)}


@pytest.fixture(scope="module")
def rebuilt(world, began, renamed):
    """A change that does not fit is approved while a batch is open; the same rows come once."""
    world.send("events", {"id": "a", "n": 6}, {"id": "c", "n": 7})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "crash_point", _end_here)
        with pytest.raises(StateError, match="as if it had ended"):
            world.run()
    assert BatchLog(LocalStore(world.directory)).open_batch() is not None
    world.write(REBUILT)
    told = world.plan(code=1)
    with pytest.raises(StateError, match="was made for another plan"):
        world.run()
    approved = world.plan("--approve", "evolved_too")
    world.send("events", {"id": "a", "n": 8}, {"id": "c", "n": 9})
    return told, approved, world.run()


def _end_here(point, batch, driver):
    if point == "batch_logged":
        raise StateError("as if it had ended here")


def test_a_rebuild_waits_for_a_decision(rebuilt):
    told, approved, _ = rebuilt
    assert told.startswith("needs a rebuild  evolved_too")
    assert "--approve evolved_too" in told
    assert "approved, --from continue: dimensions are loaded again" in approved


def test_a_rebuilt_state_writes_no_row_twice_and_knows_the_dimension_again(world, began, rebuilt):
    assert world.rows()[6:] == [
        {"id": "a", "n": 6, "name": "aa", "tier": None, "city": "Bonn"},
        {"id": "c", "n": 7, "name": "cc", "tier": "x", "city": None},
        {"id": "a", "n": 8, "name": "aa", "tier": "gold", "city": "Bonn"},
        {"id": "c", "n": 9, "name": None, "tier": None, "city": None},
    ]
    assert rebuilt[2]["emitted"] == 2


def test_the_old_state_is_set_aside_and_forgotten(world, began, rebuilt):
    assert world.state_id != began
    assert (world.directory / "old" / began / "state.json").is_file()
    assert not (world.directory / "approved.json").exists()
    assert not (world.directory / "rebuild.json").exists()
    assert ControlTopic(world.kafka, "evolved").states() == {(world.state_id, 1)}
    assert world.plan().startswith("unchanged  evolved_too")


def test_another_machine_goes_on_with_the_state_that_was_made_anew(world, rebuilt):
    state = world.state_id
    shutil.rmtree(world.directory)
    world.send("events", {"id": "a", "n": 10})
    world.run()
    assert world.state_id == state
    assert world.rows()[10:] == [{"id": "a", "n": 10, "name": "aa", "tier": "gold", "city": "Bonn"}]
