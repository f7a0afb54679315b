"""`kaflow run` as a person types it: a process of its own, against a broker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from tests.committed import read_committed

ENGINE = Path(__file__).parents[3] / "engine"
COMMAND = [sys.executable, "-m", "kaflow_engine.cli.main", "run"]


def environment(broker=None):
    brokers = {"KAFLOW__KAFKA__BROKERS": broker.bootstrap} if broker else {}
    paths = os.pathsep.join([str(ENGINE), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", **brokers}


def run(folder, *arguments, broker=None):
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(broker),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def kafka(broker):
    return KafkaSettings.of([broker.bootstrap])


@pytest.fixture
def project(tmp_path, unique):
    """Two pipelines that declare no columns."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    folder.joinpath("joined.yaml").write_text(
        f"name: {unique}-joined\n"
        "query: |\n"
        f'  SELECT e.id, e.n, p.tier FROM "{unique}.events" e\n'
        f'  LEFT JOIN "{unique}.profiles" p ON e.id = p.id\n'
        f"output: {{topic: {unique}.joined, key: id}}\n"
        "emission: {type: smart, require: [tier]}\n"
        f'state: {{dimensions: ["{unique}.profiles"]}}\n'
    )
    folder.joinpath("even.yaml").write_text(
        f"name: {unique}-even\n"
        f'query: SELECT e.id, e.n FROM "{unique}.events" e WHERE e.n % 2 = 0\n'
        f"output: {{topic: {unique}.even, key: id}}\n"
    )
    return tmp_path


def send(kafka, topic, values):
    producer = open_producer(kafka).api
    for value in values:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, data)
    producer.flush(30)


def fill(kafka, unique, numbers):
    send(kafka, f"{unique}.profiles", ({"id": f"u{i}", "tier": "gold"} for i in range(5)))
    events = [{"id": f"u{n % 7}", "n": n} for n in numbers]
    send(kafka, f"{unique}.events", [*events, b"{broken"])


@pytest.mark.kafka
@pytest.mark.spark
def test_a_run_catches_up_and_the_next_goes_on(project, broker, kafka, unique):
    create_topic(kafka, f"{unique}.events", 2)
    create_topic(kafka, f"{unique}.profiles", 2)
    fill(kafka, unique, range(70))
    first = run(project, "pipelines", "--until-caught-up", "--json", broker=broker)
    assert first.returncode == 0, first.stderr
    even, joined = json.loads(first.stdout)["pipelines"]
    assert (even["read"], even["emitted"], even["filtered"], even["dead_letter"]) == (71, 35, 35, 1)
    assert (joined["read"], joined["emitted"], joined["waiting"]) == (71, 50, 20)
    assert even["adds_up"]
    assert joined["adds_up"]
    assert even["ending"] == joined["ending"] == "caught up"
    assert f"created topic '{unique}.joined' with 2 partitions" in first.stderr
    assert len(read_committed(kafka, f"{unique}.joined")) == 50
    assert len(read_committed(kafka, f"{unique}-joined.dead_letters")) == 1
    send(kafka, f"{unique}.profiles", [{"id": "u5", "tier": "new"}])
    second = run(project, "pipelines", "--until-caught-up", "--plain", broker=broker)
    assert second.returncode == 0, second.stderr
    assert len(read_committed(kafka, f"{unique}.joined")) == 60
    heads, *lines = second.stdout.splitlines()[2:5]
    assert heads.split()[:3] == ["pipeline", "read", "="]
    assert all(line.endswith("adds up") for line in lines)
    assert "created topic" not in second.stderr
    assert "Traceback" not in first.stderr + second.stderr


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_batch_and_ends_well(project, broker, kafka, unique, number):
    create_topic(kafka, f"{unique}.events", 1)
    create_topic(kafka, f"{unique}.profiles", 1)
    fill(kafka, unique, range(10))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, "pipelines"],
        cwd=project,
        env=environment(broker),
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as running:
        assert running.stderr is not None
        said = []
        for line in running.stderr:
            said.append(line)
            if line.startswith("first row of"):
                running.send_signal(number)
                break
        out, rest = running.communicate(timeout=120)
    assert running.returncode == 0, "".join(said) + rest
    assert "stopping: batches that run are finished" in rest
    assert out.count("adds up") == 2
    assert out.count("drained after") == 2


@pytest.mark.kafka
def test_waiting_for_a_first_record_can_be_stopped(project, broker, kafka, unique):
    create_topic(kafka, f"{unique}.events", 1)
    create_topic(kafka, f"{unique}.profiles", 1)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, "pipelines"], cwd=project, env=environment(broker), stderr=pipe, text=True
    ) as running:
        assert running.stderr is not None
        said = []
        for line in running.stderr:
            said.append(line)
            if line.startswith("waiting for a first record"):
                running.send_signal(signal.SIGINT)
                break
        _, rest = running.communicate(timeout=60)
    assert running.returncode == 0, "".join(said) + rest
    assert "stopped before anything ran" in rest


@pytest.mark.kafka
def test_a_topic_that_does_not_exist_ends_with_11(project, broker, unique):
    done = run(project, "pipelines", broker=broker)
    assert done.returncode == 11
    assert f"no topic '{unique}.events'" in done.stderr
    assert "even.yaml:2" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.kafka
@pytest.mark.services
def test_an_incompatible_output_schema_ends_with_12(tmp_path, broker, registry, kafka, unique):
    create_topic(kafka, f"{unique}.in", 1)

    def start(kind):
        tmp_path.joinpath("p.yaml").write_text(
            f"name: {unique}\n"
            f'query: SELECT CAST(a.id AS {kind}) AS id FROM "{unique}.in" a\n'
            f"output: {{topic: {unique}.out, format: avro}}\n"
            f'topics: {{"{unique}.in": {{columns: {{id: VARCHAR}}}}}}\n'
        )
        registered = ("--set", f"kafka.schemaRegistry={registry.url}", "--until-caught-up")
        return run(tmp_path, "p.yaml", *registered, broker=broker)

    assert start("BIGINT").returncode == 0
    refused = start("BLOB")
    assert refused.returncode == 12
    assert f"refuses the schema of '{unique}.out-value'" in refused.stderr


@pytest.mark.slow
def test_mistakes_in_files_end_with_10(tmp_path):
    tmp_path.joinpath("good.yaml").write_text(
        "name: a\nquery: SELECT 1 AS x FROM t\noutput: {topic: o}\n"
    )
    tmp_path.joinpath("bad.yaml").write_text("name: b\nquery: SELECT x FROM t\noutput: {topc: o}\n")
    done = run(tmp_path, ".")
    assert done.returncode == 10
    assert "bad.yaml:3" in done.stderr
    assert "did you mean 'topic'?" in done.stderr


@pytest.mark.slow
def test_a_path_is_needed(tmp_path):
    assert run(tmp_path).returncode == 2
