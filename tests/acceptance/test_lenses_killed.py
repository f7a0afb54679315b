"""A processor with a window, a join and tables: killed at twenty points, and on three workers,
which are tasks of Spark."""
# pyright: basic

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.lenses.front_end import load_processor
from kaflow_engine.runtime.batch import runner as batches
from kaflow_engine.runtime.jobs.executor import ALL_TASKS, execute_batch
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.crash_here import config_of
from tests.acceptance.crash_pipeline import START
from tests.acceptance.killed_files import KILLS, TRIED
from tests.committed import read_committed

pytestmark = pytest.mark.kafka

INPUTS = "lenses"
ORDERS, CUSTOMERS, TIERS = 260, 9, 3
MINUTE = 60_000
SQL = """
WITH paid AS (
  SELECT STREAM o.id, o.customer, p.amount
  FROM lenses.orders AS o JOIN lenses.payments AS p ON o.id = p.order_id WITHIN 30m
);
WITH people AS (SELECT TABLE name FROM lenses.people);
WITH known AS (
  SELECT STREAM paid.id AS id, paid.amount AS amount, people.name AS name
  FROM paid JOIN people ON paid.customer = people._key
);
INSERT INTO {0}.rows SELECT STREAM id AS _key, * FROM known;
INSERT INTO {0}.windows
SELECT STREAM name, COUNT(*) AS n, SUM(amount) AS total
FROM known WINDOW BY TUMBLE 20m GROUP BY name;
INSERT INTO {0}.tiers SELECT TABLE tier, COUNT(*) AS n FROM lenses.customers GROUP BY tier;
"""
OUTPUTS = ("rows", "windows", "tiers")
PATIENT = {"idle_timeout": "7d", "lateness": "4h"}
"""Batches take topics as they come: orders may be hours ahead of payments."""
TOPICS = {
    "lenses.orders": {"columns": {"id": "VARCHAR", "customer": "VARCHAR"}, **PATIENT},
    "lenses.payments": {
        "columns": {"order_id": "VARCHAR", "amount": "INTEGER"},
        **PATIENT,
    },
    "lenses.people": {"columns": {"name": "VARCHAR"}, **PATIENT},
    "lenses.customers": {"columns": {"name": "VARCHAR", "tier": "VARCHAR"}, **PATIENT},
}
PAIRS = sum(
    1 for n in range(ORDERS) if n % 5 and n * 13 % 40 <= 30 and n * 7 % (CUSTOMERS + 1) != CUSTOMERS
)
"""Orders that are paid within half an hour by someone who is known."""


def records():
    """Yield records by topic: customers move between tiers, orders are paid at once or too late."""
    for n in range(CUSTOMERS):  # before the first order: a table's newer row counts as absent
        yield "people", f"u{n}", {"name": f"n{n}"}, START + n
        yield "customers", f"u{n}", {"name": f"n{n}", "tier": f"t{n % TIERS}"}, START + n
    for n in range(ORDERS):
        order, at = f"o{n}", START + MINUTE + n * MINUTE // 2
        yield "orders", order, {"id": order, "customer": f"u{n * 7 % (CUSTOMERS + 1)}"}, at
        if n % 5:
            late = (n * 13 % 40) * MINUTE
            yield "payments", order, {"order_id": order, "amount": n % 17}, at + late
        if n % 20 == 0:
            person = n // 20 % CUSTOMERS
            said = {"name": f"n{person}", "tier": f"t{(n // 20 + person) % TIERS}"}
            yield "customers", f"u{person}", said, at


@pytest.fixture(scope="module")
def inputs(crash_broker):
    producer = open_producer(crash_broker.settings).api
    for topic in ("orders", "payments", "people", "customers"):
        create_topic(crash_broker.settings, f"{INPUTS}.{topic}", 3, {"retention.ms": "-1"})
    for topic, key, value, at in sorted(records(), key=lambda record: record[3]):
        encoded = None if value is None else json.dumps(value).encode()
        partition = sum(key.encode()) % 3
        producer.produce(f"{INPUTS}.{topic}", encoded, key, partition, timestamp=at)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def runs(file_runs, inputs):
    return file_runs(write)


@pytest.fixture(scope="module")
def peace_of_it(crash_broker, runs):
    """What a run sends that is not killed, in one task."""
    return sent(crash_broker, runs.in_peace("lenses_peace"))


def write(folder, order, runners=1):
    """Write the files of a processor; return its YAML."""
    (folder / f"{order.name}.processor.sql").write_text(SQL.format(order.name))
    file = folder / f"{order.name}.processor.yaml"
    file.write_text(json.dumps({"name": order.name, "runners": runners, "topics": TOPICS}))
    return file


def sent(broker, name):
    """Return the rows of the stream, and the last row of each key of the others."""
    found = {output: read_committed(broker.settings, f"{name}.{output}") for output in OUTPUTS}
    pairs = {
        output: list(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True))
        for output, rows in found.items()
    }
    tables = [{k: v for k, v in dict(pairs[each]).items() if v is not None} for each in OUTPUTS[1:]]
    return Counter(pairs["rows"]), *tables


def test_what_it_sends(peace_of_it):
    rows, windows, tiers = peace_of_it
    assert sum(rows.values()) == PAIRS
    assert sum(json.loads(value)["n"] for value in windows.values()) == PAIRS
    assert sum(json.loads(value)["n"] for value in tiers.values()) == CUSTOMERS
    assert len(KILLS) == 20


@pytest.fixture(scope="module")
def killed(runs):
    return runs.killed("lenses")


@pytest.mark.parametrize("kill", TRIED, ids=str)
def test_a_processor_that_is_killed_sends_the_same(crash_broker, killed, peace_of_it, kill):
    killed[kill].check()
    assert sent(crash_broker, killed[kill].name) == peace_of_it


@pytest.mark.spark
def test_three_workers_send_the_same(crash_broker, spark, runs, peace_of_it, monkeypatch):
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    widths = []

    def in_three(records, batch, shipment, size, tasks, small, resident):
        widths.append(shipment.settings.plan.partitions)
        return execute_batch(records, batch, shipment, size, 3, ALL_TASKS)

    monkeypatch.setattr(batches, "execute_batch", in_three)
    three = replace(runs, write=partial(write, runners=3)).order_of("lenses_wide")
    wide = replace(three, most=250, snapshots="1h")
    config = config_of(wide)
    (planned,) = prepare([load_processor(Path(wide.file), {})], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    assert set(widths) == {3}
    assert len(widths) > 1
    assert sent(crash_broker, wide.name) == peace_of_it
