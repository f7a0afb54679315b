"""Dead letters are found, shown and counted, and put through their pipeline again, each once."""
# pyright: basic

import json

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.dead_letters.redrive import find_letters, redrive
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.planning.prepare import prepare

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FILE = """
name: {name}
query: SELECT id, {number} AS n FROM {topic}
output: {{topic: {name}_out, format: json, key: id}}
topics: {{{topic}: {{columns: {{id: VARCHAR, n: VARCHAR}}}}}}
"""
BAD = (b"no json", b'{"id": "b", "n": "twelve"}')
GOOD = b'{"id": "a", "n": "1"}'


class World:
    """Two pipelines that read one topic; one of them cannot read all numbers."""

    def __init__(self, broker, spark, folder, prefix):
        self.kafka = KafkaSettings.of([broker.bootstrap])
        self.spark, self.folder, self.topic = spark, folder, f"{prefix}_in"
        self.strict, self.other = f"{prefix}_strict", f"{prefix}_other"
        create_topic(self.kafka, self.topic, 2)
        producer = open_producer(self.kafka, **{"enable.idempotence": True}).api
        for n in range(20):
            value = (GOOD, *BAD)[n % 3]
            headers = [("trace", b"%d" % n)]
            producer.produce(self.topic, value, b"k%d" % n, partition=n % 2, headers=headers)
        assert producer.flush(30) == 0
        self.write(self.strict, "CAST(n AS INTEGER)")
        self.write(self.other, "n")
        self.settings = ["--set", f"kafka.brokers={broker.bootstrap}"]
        self.config = Config.model_validate(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(folder / "state")}},
            }
        )

    def write(self, name, number):
        text = FILE.format(name=name, number=number, topic=self.topic)
        (self.folder / f"{name}.yaml").write_text(text)

    def run(self):
        """Read all that the topic holds, and return the counters of both pipelines."""
        from kaflow_engine.model.pipelines.loader import load_pipeline
        from kaflow_engine.plan.evolution.diff import change
        from kaflow_engine.runtime.application import run_pipelines

        specs = [load_pipeline(self.folder / f"{n}.yaml") for n in (self.strict, self.other)]
        plans = [planned.plan for planned in prepare(specs, self.config)]
        done = run_pipelines(
            plans, self.config, until_caught_up=True, spark=self.spark, change=change
        )
        return [done.pipelines[name].counters for name in (self.strict, self.other)]

    def command(self, *arguments, code=0):
        name, *options = arguments
        command = ["dead-letters", name, self.strict, str(self.folder), *options, *self.settings]
        done = CliRunner().invoke(kaflow, command)
        assert done.exit_code == code, done.output
        return done

    def values(self, name):
        return [
            json.loads(value) for value in read_all(self.kafka, f"{name}_out")["value"].to_pylist()
        ]


@pytest.fixture(scope="module")
def world(broker, spark, tmp_path_factory):
    return World(broker, spark, tmp_path_factory.mktemp("letters"), "redriven")


@pytest.fixture(scope="module")
def before(world):
    return world.run()


def test_every_record_is_accounted_for(before):
    strict, other = before
    assert (strict["read"], strict["emitted"], strict["dead_letter"]) == (20, 7, 13)
    assert (other["read"], other["emitted"], other["dead_letter"]) == (20, 13, 7)


def test_they_are_listed(world, before):
    told = world.command("list", "--where", "phase = 'sql'", "--limit", "2")
    assert told.stderr.strip() == f"2 of 6 dead letters of {world.strict}"
    head, first, _ = told.stdout.splitlines()
    assert head.split() == ["letter", "record", "time", "phase", "error", "try", "message"]
    assert f"{world.topic}[" in first
    assert "cannot compute CAST" in first
    found = json.loads(world.command("list", "--where", "attempt > 1", "--json").stdout)
    assert found == []


def test_one_is_shown_with_its_bytes(world, before):
    (one, *_) = json.loads(world.command("list", "--where", "key = 'k1'", "--json").stdout)
    shown = json.loads(world.command("show", "--letter", one["letter"], "--json").stdout)
    assert shown["value"] == "no json"
    assert shown["headers"] == {"trace": "1"}
    assert (shown["topic"], shown["partition"], shown["attempt"]) == (world.topic, 1, 1)
    assert "no json" in world.command("show", "--letter", one["letter"]).stdout
    assert "has no dead letter 9:9" in world.command("show", "--letter", "9:9", code=10).stderr


def test_they_are_counted_by_reason(world, before):
    found = json.loads(world.command("stats", "--json").stdout)
    assert [(row["phase"], row["letters"], row["redriven"]) for row in found] == [
        ("decode", 7, 0),
        ("sql", 6, 0),
    ]
    assert "decode" in world.command("stats").stdout


@pytest.mark.parametrize(
    "where", ["phse = 'sql'", "1 = ", "(SELECT 1 FROM read_text('/etc/passwd'))"]
)
def test_a_condition_that_cannot_be_read_is_told(world, before, where):
    told = world.command("list", "--where", where, code=10).stderr
    assert f"cannot read the condition {where!r}" in told
    assert "write SQL over letter, pipeline, topic, partition" in told


@pytest.fixture(scope="module")
def after(world, before):
    """The pipeline is fixed, and what it could not compute goes through it again."""
    world.write(world.strict, "TRY_CAST(n AS INTEGER)")
    dry = world.command("redrive", "--where", "phase = 'sql'", "--dry-run").stdout
    sent = world.command("redrive", "--where", "phase = 'sql'").stdout
    again = world.command("redrive", "--where", "phase = 'sql'").stdout
    return [dry, sent, again, world.run()]


def test_a_redrive_sends_each_once(world, after):
    dry, sent, again, _ = after
    assert dry == f"{world.topic}: 6\nwould send 6 records again\n"
    assert sent == f"{world.topic}: 6\nsent 6 records again\n"
    assert again == "sent 0 records again\n"


def test_redriven_records_are_accounted_for_and_only_their_pipeline_sees_them(world, after):
    strict, other = after[-1]
    assert (strict["read"], strict["emitted"], strict["dead_letter"]) == (26, 13, 13)
    assert (other["read"], other["emitted"], other["dead_letter"]) == (20, 13, 7)
    assert sum(row["n"] is None for row in world.values(world.strict)) == 6


def test_what_fails_again_is_a_letter_of_a_further_attempt(world, after):
    sent = redrive(
        world.kafka, f"{world.strict}.dead_letters", world.strict, world.strict, "key = 'k1'"
    )
    assert [letter.headers for letter in sent] == [(("trace", b"1"),)]
    strict, other = world.run()
    assert (strict["read"], strict["dead_letter"], other["read"]) == (27, 14, 20)
    letters = find_letters(world.kafka, f"{world.strict}.dead_letters", world.strict)
    found = [x for x in letters if x.key == b"k1"]
    assert sorted((x.attempt, x.redriven) for x in found) == [(1, True), (2, False)]
    newest = max(found, key=lambda letter: letter.attempt)
    assert dict(newest.headers) == {"trace": b"1", "kaflow.redrive": b"2:" + world.strict.encode()}
