"""RA20, RA22: joined tables, groups and windows, on Spark and Kafka, wherever it is killed.

Two of the steps of a batch are tried; all of them by `KAFLOW_KILLS=all`.
"""
# pyright: basic

import json
from collections import Counter
from typing import get_args

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import StateError
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime.batch import runner as batches
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.runtime.tasks.crash import CrashPoint
from tests.acceptance.crash_kinds import OF_CLUSTERS, OF_PIECES, OF_REPLACING, OF_TABLES
from tests.acceptance.kills import share
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import MINUTE, PARTITIONS, START, config_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

PREFIX = "tables"
ORDERS, CUSTOMERS, COUNTRIES = 97, 11, 4
RECORDS = 640
KEEPS_ALL = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(7 * 24 * 60 * MINUTE)}
AT_FIRST = ("before_slot", "slot_claimed")
"""A run passes them at its first delivery, and the others in each batch."""
EVERY = [
    (point, 1 if point in AT_FIRST else 3)
    for point in get_args(CrashPoint)
    if point not in (*OF_TABLES, *OF_REPLACING, *OF_PIECES, *OF_CLUSTERS)
]
OUTPUTS = ("rows", "countries", "hours")
HOUR = 60 * MINUTE


def orders():
    """Yield records of orders: inserts, other amounts, other customers, deletes."""
    for n in range(RECORDS):
        key = f"o{n * 31 % ORDERS}"
        customer = None if n % 29 == 0 else f"u{n * 7 % (CUSTOMERS + 1)}"  # the last one is unknown
        value = None if n % 13 == 0 else {"id": key, "customer": customer, "amount": n % 50}
        yield key, value, START + n * MINUTE


def customers():
    """Yield records of customers, who move from country to country, go and come."""
    for n in range(RECORDS // 8):
        key = f"u{n % CUSTOMERS}"
        value = None if n % 9 == 8 else {"id": key, "country": f"c{n * 5 % COUNTRIES}"}
        yield key, value, START + n * 8 * MINUTE + 17


@pytest.fixture(scope="module")
def topics(broker):
    producer = open_producer(broker.settings).api
    for topic, records in (("orders", orders()), ("customers", customers())):
        create_topic(broker.settings, f"{PREFIX}.{topic}", PARTITIONS, {"retention.ms": "-1"})
        for key, value, at in records:
            encoded = None if value is None else json.dumps(value).encode()
            partition = sum(key.encode()) % PARTITIONS
            producer.produce(f"{PREFIX}.{topic}", encoded, key, partition, timestamp=at)
    assert producer.flush(30) == 0


def spec_of(name):
    """Orders with the country of their customer, how many there are of each country, and windows.

    The records of orders are counted by the hour, too, whatever becomes of their order later.
    """
    joined = f"""SELECT o.id, o.amount, c.country
        FROM "{PREFIX}.orders" o LEFT JOIN "{PREFIX}.customers" c ON o.customer = c.id"""
    counted = "SELECT country, count(*) AS n, sum(amount) AS s, max(amount) AS most FROM joined"
    by_id = {"table": True, "primary_key": ["id"]}
    hours = "SELECT customer, epoch_ms(window_start) AS since, count(*) AS n FROM sent"
    return PipelineSpec.model_validate(
        {
            "name": name,
            "relations": {
                "joined": {"query": joined},
                "sent": {"topic": f"{PREFIX}.orders", "table": False},
            },
            "outputs": [
                {"from": "joined", "topic": f"{name}.rows", "key": "id"},
                {
                    "query": f"{counted} GROUP BY country",
                    "topic": f"{name}.countries",
                    "coalesce": "none",
                },
                {
                    "query": f"{hours} GROUP BY customer, tumble(INTERVAL 1 HOUR)",
                    "topic": f"{name}.hours",
                },
            ],
            "topics": {
                f"{PREFIX}.orders": {
                    "columns": {"id": "VARCHAR", "customer": "VARCHAR", "amount": "INTEGER"},
                    **by_id,
                },
                f"{PREFIX}.customers": {
                    "columns": {"id": "VARCHAR", "country": "VARCHAR"},
                    **by_id,
                },
            },
        }
    )


def run(broker, spark, path, name, place):
    """Run to the end, killed at a place before that; return what was sent of each key."""
    from kaflow_engine.runtime.application import run_pipelines

    config, spec = config_of(broker, path), spec_of(name)
    for output in OUTPUTS:
        create_topic(broker.settings, f"{name}.{output}", PARTITIONS, KEEPS_ALL)
    if place is not None:
        point, batch = place
        killed_at(point, batch, spec, config)
    (planned,) = prepare([spec], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    return {output: _sent(broker, f"{name}.{output}") for output in OUTPUTS}


def config_of(broker, path):
    """Write a checkpoint whenever the last one is written, so that each batch passes its steps."""
    checkpoint = {"interval": "1ms"}
    config = config_for(broker, path, max_records=150).model_dump(by_alias=True, exclude_unset=True)
    config["state"]["rocksdb"]["checkpoint"] = checkpoint
    return Config.model_validate(config)


def _sent(broker, topic):
    found = read_all(broker.settings, topic)
    by_key: dict[str, list] = {}
    for key, value in zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True):
        by_key.setdefault(key.decode(), []).append(None if value is None else json.loads(value))
    return by_key


@pytest.fixture(scope="module")
def whole(broker, spark, topics, tmp_path_factory):
    """What a run sends that is not killed."""
    return run(broker, spark, tmp_path_factory.mktemp("whole"), "whole_tables", None)


def at_the_end():
    """Return the rows and the groups at the end, by key."""
    last = [{key: value for key, value, _ in records} for records in (orders(), customers())]
    known = {key: value["country"] for key, value in last[1].items() if value is not None}
    rows = {
        key: {"id": key, "amount": value["amount"], "country": known.get(value["customer"])}
        for key, value in last[0].items()
        if value is not None
    }
    groups = {}
    for country in {row["country"] for row in rows.values()}:
        amounts = [row["amount"] for row in rows.values() if row["country"] == country]
        shown = {"country": country, "n": len(amounts), "s": sum(amounts), "most": max(amounts)}
        groups['{"country":null}' if country is None else country] = shown
    return rows, groups


def _rows(sent):
    """Return the rows of windows, which are sent once."""
    return [row for rows in sent.values() for row in rows]


def _present(sent):
    return {key: values[-1] for key, values in sent.items() if values[-1] is not None}


def test_the_tables_at_the_end(whole):
    rows, groups = at_the_end()
    assert _present(whole["rows"]) == rows
    assert _present(whole["countries"]) == groups
    assert any(None in sent for sent in whole["rows"].values())


def test_the_windows_that_ended(whole):
    found = [(row["customer"], row["since"], row["n"]) for row in _rows(whole["hours"])]
    ended = max(since for _, since, _ in found)  # how far the watermark of the last batch came
    assert ended >= START + 9 * HOUR
    counts = Counter(
        (value["customer"], START + (at - START) // HOUR * HOUR)
        for _, value, at in orders()
        if value is not None
    )
    assert sorted(found, key=str) == sorted(
        ((*group, n) for group, n in counts.items() if group[1] <= ended), key=str
    )


@pytest.mark.parametrize("place", share(EVERY, 2), ids=str)
def test_a_run_that_is_killed_sends_the_same(broker, spark, whole, tmp_path, unique, place):
    found = run(broker, spark, tmp_path / "state", unique, place)
    assert found["rows"] == whole["rows"]
    assert sorted(map(str, _rows(found["hours"]))) == sorted(map(str, _rows(whole["hours"])))
    # a group is fed by several partitions, and batches behind a kill may be cut otherwise
    assert _present(found["countries"]) == _present(whole["countries"])


def test_an_output_and_groups_that_are_added_begin_with_all_rows(
    broker, spark, topics, tmp_path, unique
):
    """Their first batch is a tick, as no record is left to read; it ends before its commit once."""
    from kaflow_engine.runtime.application import run_pipelines

    config = config_for(broker, tmp_path / "state", max_records=150)
    said = spec_of(unique).model_dump(by_alias=True, exclude_unset=True)
    rows, groups, _ = said["outputs"]
    copies = {"from": "joined", "topic": f"{unique}.copies", "key": "id"}
    said["relations"].pop("sent")
    before, after = (
        PipelineSpec.model_validate(said | {"outputs": outputs})
        for outputs in ([rows], [rows, groups, copies])
    )
    for spec in (before, after):
        (planned,) = prepare([spec], config)
        crashed: list[int] = []

        def end_here(point, batch, driver, crashed=crashed):
            if point == "before_commit_log" and not crashed:
                crashed.append(batch)
                raise StateError("as if it had ended")

        with pytest.MonkeyPatch.context() as patch:
            if spec is after:
                patch.setattr(batches, "crash_point", end_here)
                with pytest.raises(StateError, match="as if it had ended"):
                    run_pipelines(
                        [planned.plan], config, until_caught_up=True, spark=spark, change=change
                    )
        run_pipelines([planned.plan], config, until_caught_up=True, spark=spark, change=change)
    rows, groups = at_the_end()
    assert crashed
    assert _present(_sent(broker, f"{unique}.rows")) == rows
    assert _sent(broker, f"{unique}.copies") == {key: [row] for key, row in rows.items()}
    assert _sent(broker, f"{unique}.countries") == {key: [row] for key, row in groups.items()}
