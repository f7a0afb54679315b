"""A broker that is away: at the start, and while rows flow. KAFLOW_OUTAGE_SECONDS for longer."""
# pyright: basic

import json
import os
import threading
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka import wait as kafka_wait
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.errors import BrokerAway
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.connectors.kafka.wait import await_brokers
from kaflow_engine.model.config import Config
from kaflow_engine.testing.services.broker import Broker
from tests.engine.runtime.plans_here import lookup_plan

OUTAGE_S = float(os.environ.get("KAFLOW_OUTAGE_SECONDS", "20"))
USERS = 10

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def frail():
    """A broker that tests stop and start."""
    with Broker() as running:
        yield running


@pytest.fixture
def kafka(frail):
    frail.start()
    return KafkaSettings.of([frail.bootstrap])


def test_a_run_gives_up_after_its_deadline(tmp_path, monkeypatch):
    pauses = []  # only they pass time, however long this machine takes for the rest
    clock = SimpleNamespace(sleep=pauses.append, monotonic=lambda: sum(pauses))
    monkeypatch.setattr(kafka_wait, "time", clock)
    tmp_path.joinpath("p.yaml").write_text("name: p\nquery: SELECT id FROM t\noutput: {topic: o}\n")
    settings = ("--set", "kafka.brokers=127.0.0.1:9", "--set", "retry_deadline=1500ms")
    done = CliRunner().invoke(kaflow, ["run", str(tmp_path / "p.yaml"), *settings])
    assert pauses == [0.25, 0.5]  # another second would be more than the deadline
    assert done.exit_code == 11
    assert done.stderr.count("waiting for a broker at 127.0.0.1:9, at most 1.5 s") == 1
    assert "no broker at 127.0.0.1:9 answered within 1.5 s" in done.stderr
    assert "check 'kafka.brokers'" in done.stderr


def test_a_broker_that_comes_up_meanwhile_is_found(frail, kafka):
    frail.kill()
    told = []
    later = threading.Thread(target=frail.start)

    def start_it(text):
        told.append(text)
        later.start()

    await_brokers(kafka, 60_000, start_it)
    later.join()
    assert len(told) == 1


def test_waiting_can_be_stopped(frail, kafka):
    frail.kill()
    with pytest.raises(BrokerAway):
        await_brokers(kafka, 60_000, stopped=lambda: True)


def send(kafka, topic, values):
    producer = open_producer(kafka, **{"enable.idempotence": True}).api
    for value in values:
        producer.produce(topic, json.dumps(value).encode(), key=value["id"].encode())
    assert producer.flush(60) == 0


@pytest.mark.spark
def test_an_outage_loses_and_doubles_nothing(spark, frail, kafka, unique, tmp_path):
    """The broker is killed between two batches, and again in the middle of one."""
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    for name, partitions in (("events", 2), ("profiles", 1), ("out", 2), ("out.dead", 1)):
        create_topic(kafka, f"{unique}.{name}", partitions)
    plan = lookup_plan(unique, f"{unique}.events", f"{unique}.profiles", f"{unique}.out")
    send(kafka, f"{unique}.profiles", ({"id": f"u{n}", "tier": f"t{n}"} for n in range(USERS)))

    def events(numbers):
        send(kafka, f"{unique}.events", ({"id": f"u{n % USERS}", "n": str(n)} for n in numbers))

    events(range(200))
    config = Config.model_validate(
        {
            "kafka": {"brokers": frail.bootstrap},
            "state": {"rocksdb": {"path": str(tmp_path)}},
            "max_records": 40,
        }
    )
    stop, away = threading.Event(), threading.Event()
    errors: list[str] = []
    threads: list[threading.Thread] = []

    def outage():
        frail.kill()
        away.wait(OUTAGE_S)  # nothing sets it: the time itself is what is tested
        frail.start()
        events(range(200, 300))

    def progressed(progress):
        if progress.last_error:
            errors.append(progress.last_error)
        if not threads and progress.state == "running" and progress.batch >= 3:
            # it runs on another thread, so the next batch has begun when the broker goes
            threads.append(threading.Thread(target=outage))
            threads[0].start()
        if progress.counters.get("emitted", 0) >= 300:
            stop.set()

    summary = run_pipelines([plan], config, on_progress=progressed, stop=stop, spark=spark)
    threads[0].join()
    found = read_all(kafka, f"{unique}.out")["value"].to_pylist()
    assert sorted(int(json.loads(value)["n"]) for value in found) == list(range(300))
    counters = summary.pipelines[unique].counters
    assert (counters["read"], counters["emitted"]) == (300, 300)
    assert not [error for error in errors if "Traceback" in error or "\tat " in error]
