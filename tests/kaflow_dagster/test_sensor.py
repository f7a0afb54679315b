"""The supervisor against a real Dagster instance, with runs that are only recorded."""

# pyright: basic

import os
import subprocess
import sys
import time

import dagster as dg
import pytest
from click.testing import CliRunner

from kaflow_dagster.build import build_kaflow_defs
from kaflow_dagster.runs.names import DRAIN, PIPELINE, PROCESS, VERSION
from kaflow_dagster.streams.process import Process, process_of
from kaflow_dagster.streams.sensor import sessions_of
from kaflow_dagster.streams.supervision import SupervisionLimits
from kaflow_engine.cli.main import kaflow
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.runtime.planning.preview import outlook_of
from tests.engine.state_here import write_state

PIPELINE_FILE = """
name: p
query: SELECT id FROM orders
output: {topic: out, key: id}
topics:
  orders: {columns: {id: VARCHAR}}
"""
STATE = "KAFLOW__STATE__ROCKSDB__PATH"


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    (tmp_path / "p.yaml").write_text(PIPELINE_FILE)
    defs = build_kaflow_defs([tmp_path / "p.yaml"], patience=SupervisionLimits(silence=30))
    repository = defs.get_repository_def()
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance, repository.get_sensor_def("supervise__p"), repository.get_job("stream__p")


def tick(instance, sensor, since=None):
    context = dg.build_sensor_context(instance, last_sensor_start_time=since)
    found = sensor.evaluate_tick(context)
    (request,) = found.run_requests or [None]
    return request or found.skip_message


def started(instance, job, **tags):
    run = instance.create_run_for_job(job, tags={**job.tags, **tags})
    for kind in (
        dg.DagsterEventType.PIPELINE_STARTING,
        dg.DagsterEventType.PIPELINE_START,
    ):
        instance.report_dagster_event(
            dg.DagsterEvent(event_type_value=kind.value, job_name=job.name), run_id=run.run_id
        )
    return run


def test_the_first_tick_launches_and_so_does_the_next_one(world):
    instance, sensor, job = world
    first, again = tick(instance, sensor), tick(instance, sensor)
    assert first.run_key == again.run_key == "p:first"
    assert job.tags[PIPELINE] == "p"


def test_a_stream_is_left_alone(world):
    instance, sensor, job = world
    run = started(instance, job)
    assert tick(instance, sensor) == f"ok: run {run.run_id} streams"


def test_a_changed_plan_drains_the_stream(world):
    instance, sensor, job = world
    run = started(instance, job, **{VERSION: "older"})
    assert tick(instance, sensor).startswith("drain: the plan has changed")
    assert "plan has changed" in instance.get_run_by_id(run.run_id).tags[DRAIN]
    assert tick(instance, sensor) == f"ok: run {run.run_id} finishes its batch"


def test_a_terminated_stream_is_held_until_the_sensor_is_switched(world):
    instance, sensor, job = world
    run = started(instance, job)
    instance.report_run_canceling(run)
    instance.report_run_canceled(run)
    assert "switch this sensor off and on" in tick(instance, sensor)
    assert tick(instance, sensor, since=time.time() + 1).run_key == f"p:{run.run_id}"


def test_a_failed_stream_is_started_again_after_a_pause(world):
    instance, sensor, job = world
    run = started(instance, job)
    instance.report_run_failed(run, "killed")
    assert tick(instance, sensor).startswith("backoff: start 2 of 5")


def test_a_silent_stream_is_killed_and_then_reported(world, monkeypatch):
    instance, sensor, job = world
    late = time.time() + 100
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as sleeper:
        run = started(instance, job, **{PROCESS: str(process_of(sleeper.pid))})
        monkeypatch.setattr("kaflow_dagster.streams.sensor.time.time", lambda: late)
        assert tick(instance, sensor).startswith(f"reap: run {run.run_id} has said nothing for ")
        assert sleeper.wait(10) == -9
    (session,) = sessions_of(instance, "p", 5)
    assert session.status == "failed"


def test_a_broken_file_holds_the_stream(world, tmp_path):
    instance, sensor, _ = world
    (tmp_path / "p.yaml").write_text(PIPELINE_FILE.replace("SELECT id", "SELECT nope"))
    said = tick(instance, sensor)
    assert said.startswith("held: ")
    assert "p.yaml:3" in said


def renamed(tmp_path):
    text = PIPELINE_FILE.replace("name: p\n", "name: q\nid: p\n")
    (tmp_path / "p.yaml").write_text(text)
    repository = build_kaflow_defs([tmp_path / "p.yaml"]).get_repository_def()
    return repository.get_sensor_def("supervise__q")


def test_a_renamed_pipeline_takes_over_when_the_run_of_its_old_name_has_ended(world, tmp_path):
    instance, _, job = world
    run = started(instance, job)
    sensor = renamed(tmp_path)
    assert tick(instance, sensor) == "drain: pipeline 'p' is called 'q' now"
    assert instance.get_run_by_id(run.run_id).tags[DRAIN] == "pipeline 'p' is called 'q' now"
    assert tick(instance, sensor) == f"ok: run {run.run_id} of 'p' finishes its batch"
    instance.report_run_canceled(run)
    assert tick(instance, sensor).run_key == "q:first"


def test_a_state_that_does_not_fit_holds_the_stream_until_somebody_approves(world, tmp_path):
    instance, sensor, job = world
    file = tmp_path / "p.yaml"
    settings = ["--set", f"state.rocksdb.path={tmp_path / 'state'}"]
    config = load_config(None)
    plan = outlook_of(load_pipeline(file), config).new
    write_state(tmp_path / "state" / "p", plan)
    timed = "{id: VARCHAR, at: BIGINT}, event_time: at}"
    file.write_text(PIPELINE_FILE.replace("{id: VARCHAR}}", timed))
    said = tick(instance, sensor)
    assert said.startswith("held: p needs a rebuild: topic 'orders': event time is CAST(c.at AS")
    assert said.endswith(f"; kaflow plan {file} --approve p")
    run = started(instance, job, **{VERSION: "older"})
    assert tick(instance, sensor).startswith("ok: goes on with its old plan: p needs a rebuild")
    done = CliRunner().invoke(kaflow, ["plan", str(file), "--approve", "p", *settings])
    assert done.exit_code == 0, done.output
    assert tick(instance, sensor).startswith("drain: the plan has changed")
    instance.report_run_canceled(run)
    assert tick(instance, sensor, since=time.time() + 1).run_key == f"p:{run.run_id}"


def test_a_process_is_known_by_its_beginning():
    mine = process_of(os.getpid())
    assert mine is not None
    assert mine.alive
    assert Process.parse(str(mine)) == mine
    other = Process(mine.host, mine.pid, "1")
    assert not other.alive
    assert other.kill(), "someone else has its number now"
    assert not Process("elsewhere", mine.pid, mine.began).kill()
    assert Process.parse("nonsense") is None
