"""A session streams in a real Dagster run, until it is asked to drain, and reports what it does."""

# pyright: basic

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from kaflow_dagster.runs.names import DRAIN, PIPELINE, PROCESS
from kaflow_dagster.streams.process import process_of
from kaflow_dagster.streams.sensor import sessions_of
from kaflow_engine.connectors.kafka.admin import create_topic, describe
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_first

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROOT = Path(__file__).parents[2]
FILE = """
name: {name}
query: SELECT id, n FROM {name}_in WHERE n > 0
output: {{topic: {name}_out, key: id}}
topics:
  {name}_in: {{columns: {{id: VARCHAR, n: BIGINT}}}}
"""
CONFIG = """
kafka: {{brokers: ["{brokers}"]}}
state: {{rocksdb: {{path: {state}}}}}
"""


RUN = """
import sys
from pathlib import Path
import dagster as dg
from kaflow_dagster.streams import outputs
from kaflow_dagster.build import build_kaflow_defs
from kaflow_engine.runtime import newest_rows
outputs._WAIT_S = outputs._SLOW_S = 120.0  # newest rows come however busy the machine is
newest_rows._TIMEOUT = 60_000
home, file, config, job = sys.argv[1:]
found = build_kaflow_defs([Path(file)], Path(config)).get_repository_def().get_job(job)
with dg.DagsterInstance.from_config(home) as instance:
    done = found.execute_in_process(instance=instance, raise_on_error=False)
sys.exit(0 if done.success else 3)
"""


class World:
    """A project of one pipeline, and a Dagster instance that its process shares with the test."""

    def __init__(self, kafka, name, path, instance):
        self.kafka, self.name, self.path, self.instance = kafka, name, path, instance

    def start(self):
        arguments = [self.path / "home", self.path / "p.yaml", self.path / "kaflow.yaml"]
        return subprocess.Popen(
            [sys.executable, "-c", RUN, *map(str, arguments), f"stream__{self.name}"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "engine")])},
            stderr=subprocess.DEVNULL,
        )

    @property
    def session(self):
        """The newest session, if there is one."""
        return next(iter(sessions_of(self.instance, self.name, 1)), None)

    def newest(self, topic):
        """The metadata of a topic's newest materialization."""
        key = dg.AssetKey(["kafka", topic])
        event = self.instance.get_latest_materialization_event(key).asset_materialization
        rows = event.metadata["kaflow/newest"].records
        plain = {k: getattr(v, "value", None) for k, v in event.metadata.items()}
        return {**plain, "kaflow/newest": rows}


@pytest.fixture
def world(broker, unique, tmp_path):
    create_topic(broker.settings, f"{unique}_in", 2)
    (tmp_path / "p.yaml").write_text(FILE.format(name=unique))
    (tmp_path / "kaflow.yaml").write_text(
        CONFIG.format(brokers=broker.bootstrap, state=tmp_path / "state")
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        yield World(broker.settings, unique, tmp_path, instance)


def feed(kafka, name, count):
    producer = open_producer(kafka).api
    producer.produce(f"{name}_in", b"broken")
    for n in range(count):
        producer.produce(f"{name}_in", json.dumps({"id": f"i{n}", "n": n}).encode())
    assert producer.flush(30) == 0


def rows(kafka, topic):
    return read_first(kafka, topic).num_rows if describe(kafka, [topic])[topic].exists else 0


def until(holds, seconds=90):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_session_streams_and_drains(world):
    feed(world.kafka, world.name, 10)
    with world.start() as process:
        until(lambda: world.session is not None and world.session.status == "running")
        run_id = world.session.run_id
        out = f"{world.name}_out"
        until(lambda: rows(world.kafka, out) == 9)
        tags = world.instance.get_run_by_id(run_id).tags
        assert (tags[PIPELINE], tags[PROCESS]) == (world.name, str(process_of(process.pid)))
        world.instance.add_run_tags(run_id, {DRAIN: "enough"})
        assert process.wait(120) == 0
    assert world.session.status == "done"
    event = world.instance.get_latest_materialization_event(dg.AssetKey(["streams", world.name]))
    numbers = {k: v.value for k, v in event.asset_materialization.metadata.items()}
    assert (numbers["kaflow/emitted"], numbers["kaflow/lag"]) == (9, 0)
    assert numbers["kaflow/state"] == "stopped"
    written = world.newest(f"{world.name}_out")
    assert written["kaflow/offsets_read"][f"{world.name}_in"]
    assert {"kaflow/batch", "kaflow/lag", "kaflow/offsets_written"} <= set(written)
    newest = [row.data for row in written["kaflow/newest"]]
    assert sorted((row["id"], row["n"]) for row in newest) == [(f"i{n}", n) for n in range(1, 10)]
    (letter,) = [row.data for row in world.newest(f"{world.name}.dead_letters")["kaflow/newest"]]
    assert (letter["phase"], letter["value"]) == ("decode", "broken")
    said = {name: counted(world, name) for name in ("no_dead_letters", "no_late_records")}
    assert said["no_dead_letters"][0] == (False, 1, 1)
    assert said["no_late_records"] == [(True, 0, 0)] * len(said["no_dead_letters"])


def counted(world, check):
    """Return what a stream said of its records, oldest first: passed, new, total."""
    key = dg.AssetCheckKey(dg.AssetKey(["streams", world.name]), check)
    records = world.instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
    found = [record.event.dagster_event.asset_check_evaluation_data for record in records[::-1]]
    numbers = [{k: v.value for k, v in each.metadata.items()} for each in found]
    return [
        (e.passed, n["kaflow/new"], n["kaflow/total"]) for e, n in zip(found, numbers, strict=True)
    ]


def test_a_session_that_cannot_run_fails_with_the_words_of_the_engine(world):
    file = world.path / "p.yaml"
    file.write_text(file.read_text().replace("_in", "_gone"))
    with world.start() as process:
        assert process.wait(120) == 3
    (failed,) = world.instance.all_logs(
        world.session.run_id, of_type=dg.DagsterEventType.STEP_FAILURE
    )
    said = failed.dagster_event.step_failure_data.user_failure_data.description
    assert f"'{world.name}_gone'" in said
    assert "p.yaml:" in said
