import json
import threading

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.errors import RunError, SourceError
from kaflow_engine.runtime.application import run_pipelines
from kaflow_engine.runtime.batch import runner as batches
from kaflow_engine.runtime.tasks.crash import VARIABLE
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.store import LocalStore
from tests.committed import read_committed
from tests.engine.runtime.plans_here import lookup_plan
from tests.engine.runtime.run_here import config

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

USERS = 20


@pytest.fixture
def kafka(broker, unique):
    settings = KafkaSettings.of([broker.bootstrap])
    for name, partitions in (("events", 3), ("profiles", 2), ("out", 2), ("out.dead", 1)):
        create_topic(settings, f"{unique}.{name}", partitions)
    return settings


def send(kafka, topic, values):
    producer = open_producer(kafka).api
    for value in values:
        producer.produce(topic, json.dumps(value).encode(), key=value["id"].encode())
    producer.flush(30)


def profiles(kafka, name):
    send(kafka, f"{name}.profiles", ({"id": f"u{i}", "tier": f"t{i}"} for i in range(USERS)))


def events(kafka, name, numbers):
    send(kafka, f"{name}.events", ({"id": f"u{n % USERS}", "n": str(n)} for n in numbers))


def rows(kafka, name):
    found = read_committed(kafka, f"{name}.out")
    return [json.loads(value) for value in found["value"].to_pylist()]


def expected(numbers):
    return sorted(
        ({"id": f"u{n % USERS}", "n": str(n), "tier": f"t{n % USERS}"} for n in numbers),
        key=lambda row: int(row["n"]),
    )


def test_each_run_goes_on_where_the_last_one_ended(spark, broker, kafka, unique, tmp_path):
    plan = lookup_plan(unique, f"{unique}.events", f"{unique}.profiles", f"{unique}.out")
    settings = config(broker.bootstrap, str(tmp_path), 50)
    told = []
    profiles(kafka, unique)
    events(kafka, unique, range(120))
    run_pipelines([plan], settings, until_caught_up=True, on_progress=told.append, spark=spark)
    events(kafka, unique, range(120, 130))
    summary = run_pipelines([plan], settings, until_caught_up=True, spark=spark)
    assert sorted(rows(kafka, unique), key=lambda row: int(row["n"])) == expected(range(130))
    outcome = summary.pipelines[unique]
    assert (outcome.ending, outcome.records) == ("caught up", 10)
    assert outcome.counters["emitted"] == outcome.counters["read"] == 130
    states = list(dict.fromkeys(progress.state for progress in told))
    assert states == ["starting", "loading dimensions", "running", "stopped"]
    assert told[-1].lag == {f"{unique}.events": 0, f"{unique}.profiles": 0}


def test_a_stop_ends_between_batches(spark, broker, kafka, unique, tmp_path):
    plan = lookup_plan(unique, f"{unique}.events", f"{unique}.profiles", f"{unique}.out")
    stop = threading.Event()

    def stop_once_running(progress):
        if progress.batch_records and progress.state == "running":
            stop.set()

    events(kafka, unique, range(100))
    settings = config(broker.bootstrap, str(tmp_path), 10)
    summary = run_pipelines([plan], settings, on_progress=stop_once_running, stop=stop, spark=spark)
    assert summary.pipelines[unique].ending == "drained"
    assert BatchLog(LocalStore(tmp_path / unique)).load_state() is not None
    assert len(rows(kafka, unique)) == summary.pipelines[unique].counters["emitted"]


def test_a_missing_topic_is_told_at_once(spark, broker, unique, tmp_path):
    plan = lookup_plan(unique, f"{unique}.events", f"{unique}.profiles", f"{unique}.out")
    with pytest.raises(SourceError, match=f"no topics '{unique}.events', '{unique}.profiles'"):
        run_pipelines([plan], config(broker.bootstrap, str(tmp_path)), spark=spark)


@pytest.mark.parametrize("point", ["batch_logged", "commit_logged"])
def test_a_driver_that_fails_goes_on_from_its_log(
    spark, broker, kafka, unique, tmp_path, monkeypatch, point
):
    plan = lookup_plan(unique, f"{unique}.events", f"{unique}.profiles", f"{unique}.out")
    failed = []

    def fail_once(at, batch, driver):
        if (at, batch) == (point, 2) and not failed:
            failed.append(at)
            raise RunError("as if the driver had ended here")

    monkeypatch.setattr(batches, "crash_point", fail_once)
    profiles(kafka, unique)
    events(kafka, unique, range(60))
    settings = config(broker.bootstrap, str(tmp_path), 40)
    summary = run_pipelines([plan], settings, until_caught_up=True, spark=spark)
    assert failed == [point]
    assert sorted(rows(kafka, unique), key=lambda row: int(row["n"])) == expected(range(60))
    counters = summary.pipelines[unique].counters
    assert counters["emitted"] == counters["read"] == 60


@pytest.mark.parametrize("point", ["changes_written:1", "before_commit:2", "committed:2"])
def test_a_worker_that_dies_is_replaced(spark, broker, kafka, unique, tmp_path, point):
    plan = lookup_plan(unique, f"{unique}.events", f"{unique}.profiles", f"{unique}.out")
    # what Spark hands to new worker processes; those of other tests live on
    variables = spark.sparkContext.environment
    variables[VARIABLE] = f"{point}:task"
    failures = []

    def fix(progress):
        if progress.state == "degraded":
            failures.append(progress.failures)
            variables.pop(VARIABLE, None)

    profiles(kafka, unique)
    events(kafka, unique, range(60))
    settings = config(broker.bootstrap, str(tmp_path), 40)
    try:
        run_pipelines([plan], settings, until_caught_up=True, on_progress=fix, spark=spark)
    finally:
        variables.pop(VARIABLE, None)
    assert max(failures, default=0) == 1
    assert sorted(rows(kafka, unique), key=lambda row: int(row["n"])) == expected(range(60))
