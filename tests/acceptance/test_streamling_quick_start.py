"""The quick start of Streamling: the lines that it prints, in a shell of their own, are all that
it takes; but for addresses, and for `streamling`, which is `kaflow run`."""
# pyright: basic

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from tests.acceptance.kafka_cases import new_topic
from tests.acceptance.test_streamling import FIXTURES, avro, registered
from tests.page import blocks

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

LINES = (FIXTURES / "seed" / "quick_start.sh").read_text("utf-8")
FILE = (FIXTURES / "seed" / "quick_start.yaml").read_text("utf-8")
MESSAGES = "messages"
TOPIC = "raw.event.transaction"
HERE = f"exec {sys.executable} -m kaflow_engine.cli.main run"
"""`kaflow run`, and the shell is gone."""


@pytest.fixture
def send(broker, registry):
    """Send a transaction to the topic of the quick start, which has none yet."""
    new_topic(broker.settings, TOPIC, 1)
    schema = registered(registry, TOPIC, ("id", "long"), ("amount", "double"))
    producer = open_producer(broker.settings).api

    def sent(number, amount):
        headers = [("dbz.op", b"c")]
        producer.produce(TOPIC, avro(schema, number, amount), str(number), headers=headers)
        assert producer.flush(30) == 0

    return sent


@contextmanager
def started(script, folder):
    """Run a script, and stop what has become of it; its messages go to a file of the folder."""
    environment = {**os.environ, "KAFLOW__HTTP__PORT": "0"}  # other tests may have the usual one
    with (
        (folder / MESSAGES).open("w") as messages,
        subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
        ) as running,
    ):
        try:
            yield running.stdout
        except BaseException:
            running.kill()
            raise
        running.send_signal(signal.SIGTERM)
        assert running.wait(120) == 0


def first_row(lines):
    return next(json.loads(line) for line in lines if line[:1] == "{")


def test_its_lines_run(broker, registry, send, tmp_path):
    (tmp_path / "pipeline.yaml").write_text(FILE)
    lines = LINES.replace("localhost:9092", broker.bootstrap)
    lines = lines.replace("http://localhost:8081", registry.url)
    script = lines.replace("\nstreamling\n", f"\n{HERE}\n")
    send(1, 10.0)
    send(2, 1500.0)
    with started(script, tmp_path) as rows:
        row = first_row(rows)
    assert (row["op"], row["row"]) == ("upsert", {"id": 2, "amount": 1500.0})
    assert " debug " not in (tmp_path / MESSAGES).read_text()
    send(3, 4000.0)
    with started(script.replace("=info", "=debug"), tmp_path) as rows:
        row = first_row(rows)
    assert row["row"] == {"id": 3, "amount": 4000.0}  # it goes on
    assert " debug   kaflow" in (tmp_path / MESSAGES).read_text()


def test_the_page_says_the_same_lines():
    (block, *_) = blocks("sh", "from-streamling.md")
    exports = [line for line in LINES.splitlines() if line.startswith("export ")]
    assert block.splitlines()[: len(exports)] == exports
    assert block.splitlines()[-1] == "kaflow run"
