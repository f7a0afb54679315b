"""A batch that brokers take more slowly than a transaction may last.

`KAFLOW_QUOTA_MEGABYTES=200` sends so much through a broker as it comes, with the timeout that
pipelines have; without it a broker that is stricter shows the same in less time.
"""
# pyright: basic

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.runtime.spark.jars import kafka_broker_jars
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.testing.services.broker import Broker
from tests.acceptance.crash_here import Order
from tests.acceptance.crash_pipeline import START, log_of

pytestmark = pytest.mark.kafka

ASKED = os.environ.get("KAFLOW_QUOTA_MEGABYTES")
MEGABYTES = int(ASKED or 8)
TIMEOUT = "60s" if ASKED else "4s"
STRICT = {} if ASKED else {"quota.window.num": "2"}
"""Of two seconds; else what was saved in the last ten may be written at once."""
PER_SECOND = 1_000_000
SIZE = 10_000
"""Characters of a row."""


@pytest.fixture(scope="module")
def slow_broker():
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    with Broker(properties={**STRICT, **often}) as running:
        yield running


def limit_producers(broker, bytes_per_second):
    """Let all clients together write so much."""
    jars = ":".join(map(str, kafka_broker_jars()))
    tool = [str(find_java().executable), "-cp", jars, "kafka.admin.ConfigCommand"]
    quota = ["--add-config", f"producer_byte_rate={bytes_per_second}"]
    whom = ["--entity-type", "clients", "--entity-default"]
    command = [*tool, "--bootstrap-server", broker.bootstrap, "--alter", *quota, *whom]
    subprocess.run(command, check=True, capture_output=True)


def test_a_batch_under_a_quota_gets_through(slow_broker, forks, tmp_path):
    kafka, count = slow_broker.settings, MEGABYTES * 1_000_000 // SIZE
    create_topic(kafka, "in.events", 1)
    create_topic(kafka, "large.out", 1)
    create_topic(kafka, "large.dead", 1)
    producer, text = open_producer(kafka).api, random.Random(1)
    for n in range(count):
        value = json.dumps({"id": f"u{n}", "text": text.randbytes(SIZE // 2).hex()})
        producer.produce("in.events", value, partition=0, timestamp=START)
    assert producer.flush(60) == 0
    limit_producers(slow_broker, PER_SECOND)
    (end,) = forks.run(
        [
            Order(
                name="large",
                inputs="in",
                broker=slow_broker.bootstrap,
                path=str(tmp_path),
                pipeline="copy",
                most=count,
                transaction_timeout=TIMEOUT,
            )
        ]
    )
    assert (end.how, end.said) == ("ended", "")
    rows = [json.loads(value)["id"] for value in read_all(kafka, "large.out")["value"].to_pylist()]
    assert rows == [f"u{n}" for n in range(count)]
    last = log_of(Path(tmp_path), "large").last_commit()
    assert (last.number, last.counters["emitted"]) == (1, count)
