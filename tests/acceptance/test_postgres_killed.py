"""CN1, CN2: a table of Postgres, its rows and a topic, while the pipeline is killed and the server
is away. `KAFLOW_KILLS=all` for all kills, and records in their number."""
# pyright: basic

import json
import os
import signal
from collections import Counter

import psycopg
import pytest

from bench.measure.product import Product
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import RunError
from tests.acceptance.kills import ALL

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

KILLS = 10 if ALL else 1
KEYS = 10_000 if ALL else 500
PART = (200_000 if ALL else 9_000) // (KILLS + 2)
"""Records that come between two troubles."""
PIPELINE = """\
name: {name}
relations:
  latest: {{topic: {name}.changes, table: true, primary_key: [k], operation: "column:op"}}
outputs:
  - {{query: "SELECT k, n FROM latest", type: postgres, table: {name}_latest, key: k, create: true}}
  - {{query: "SELECT k, n FROM latest", topic: {name}.latest, key: k}}
  - {{query: "SELECT n FROM {name}.changes", type: postgres, table: {name}_rows, create: true}}
topics:
  {name}.changes: {{columns: {{k: BIGINT, n: BIGINT, op: VARCHAR}}}}
"""


def change(n):
    """The change with a number: every fifth one deletes."""
    return {"k": n * 7919 % KEYS, "n": n, "op": "d" if n % 5 == 4 else "u"}


def test_the_table_is_the_fold_of_its_topic(broker, postgres, tmp_path, unique):
    topic = f"{unique}.changes"
    broker.create_topic(topic, 2)
    producer, sent = open_producer(broker.settings).api, 0

    def send_part():
        nonlocal sent
        for n in range(sent, sent + PART):
            value = change(n)
            producer.produce(topic, json.dumps(value), None, value["k"] % 2)
        assert producer.flush(60) == 0
        sent += PART

    def ask(query):
        with psycopg.connect(postgres.url) as connection:
            return connection.execute(query).fetchall()

    def written():
        return ask(f"SELECT count(*) FROM {unique}_rows")[0][0]

    product = Product(
        folder=tmp_path / "run",
        brokers=broker.bootstrap,
        settings={
            "postgres.connections.default.url": postgres.url,
            "max_records": str(PART // 8),
            "retry_deadline": "2s",
        },
    )
    product.write(PIPELINE.format(name=unique))
    for _ in range(KILLS):
        with product:
            product.until(lambda: product.live)
            send_part()
            product.until(lambda: written() > sent - PART // 2)
            os.kill(product.pid, signal.SIGKILL)
    with product:
        product.until(lambda: product.live)
        send_part()
        product.until(lambda: written() > sent - PART // 2)
        postgres.stop()
        with pytest.raises(RunError, match="kaflow run ended with 12") as ended:
            product.wait(120)
        postgres.start()
    assert "failed: Connection refused" in ended.value.hint
    assert "pass-word" not in ended.value.hint
    send_part()
    expected: dict[int, int] = {}
    for each in map(change, range(sent)):
        if each["op"] == "d":
            expected.pop(each["k"], None)
        else:
            expected[each["k"]] = each["n"]
    with product:
        product.until(lambda: written() >= sent)
        product.until(lambda: dict(ask(f"SELECT k, n FROM {unique}_latest")) == expected)
    assert Counter(n for (n,) in ask(f"SELECT n FROM {unique}_rows")) == Counter(range(sent))
    records = read_all(broker.settings, f"{unique}.latest")
    folded = dict(zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True))
    rows = [json.loads(value) for value in folded.values() if value is not None]
    assert {row["k"]: row["n"] for row in rows} == expected
    entries = ask("SELECT target, count(*), count(DISTINCT slot) FROM _kaflow_ledger GROUP BY 1")
    assert {f"{unique}_latest", f"{unique}_rows"} <= {target for target, *_ in entries}
    assert all(count == slots for _, count, slots in entries)
