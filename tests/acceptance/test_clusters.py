"""A pipeline over two clusters, on Spark: topics of one name in both, read and written."""
# pyright: basic

import json
from collections import Counter

import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.dead_letters.redrive import find_letters
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.newest_rows import newest_rows
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import config_for
from tests.committed import read_committed

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

COUNT = 900
COLUMNS = {"columns": {"id": "BIGINT", "u": "VARCHAR"}}
TOPIC = "clusters.clicks"


@pytest.fixture(scope="module")
def west(crash_broker):
    """The second cluster."""
    return crash_broker


@pytest.fixture(scope="module")
def clicks(broker, west):
    """Topics of one name, with even ids at home and odd ones in the west, and one bad record."""
    for number, each in enumerate((broker, west)):
        each.create_topic(TOPIC, 2)
        producer = open_producer(each.settings).api
        for n in range(number, COUNT, 2):
            value = json.dumps({"id": n, "u": f"u{n % 7}"})
            producer.produce(TOPIC, value, f"u{n % 7}", n // 2 % 2, timestamp=1_767_225_600_000 + n)
        if number:
            producer.produce(TOPIC, b"broken", b"u0", 0, timestamp=1_767_225_600_000 + COUNT)
        assert producer.flush(30) == 0


@pytest.fixture
def config(broker, west, clicks, tmp_path):
    clusters = {"west": {"brokers": west.bootstrap}}
    kafka = {"brokers": broker.bootstrap, "clusters": clusters}
    return config_for(broker, tmp_path / "state", kafka=kafka, max_records=150)


def spec_of(name):
    both = f"""
        SELECT h.id, h._key AS k, h._topic AS t FROM "{TOPIC}" h
        UNION ALL SELECT w.id, w._key, w._topic FROM west w
    """
    few = "SELECT id, k FROM everything WHERE id % 3 = 0"
    return PipelineSpec.model_validate(
        {
            "name": name,
            "relations": {"everything": {"query": both}},
            "outputs": [
                {"from": "everything", "topic": f"{name}.out", "key": "id"},
                {"query": few, "topic": f"{name}.out", "cluster": "west", "key": "id"},
            ],
            "topics": {
                TOPIC: COLUMNS,
                "west": {"cluster": "west", "topic": TOPIC, **COLUMNS},
            },
        }
    )


KILLS = [
    ("next_cluster", 3),  # one cluster has the rows of a task, the other not
    ("committed", 3),
    ("before_commit_log", 3),  # both have them, and the log does not know
    ("transaction_begun", 2),
    ("slot_claimed", "*"),
    ("batch_logged", 3),
]
PLACES = peace_or(KILLS, 2)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_row_is_once_in_each_cluster(broker, west, spark, config, unique, place):
    from kaflow_engine.runtime.application import run_pipelines

    spec = spec_of(unique)
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)
    summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    at_home, in_west = (
        [
            json.loads(value)
            for value in read_committed(at.settings, f"{unique}.out")["value"].to_pylist()
        ]
        for at in (broker, west)
    )
    assert Counter(row["id"] for row in at_home) == Counter(range(COUNT))
    assert Counter(row["id"] for row in in_west) == Counter(range(0, COUNT, 3))
    assert {row["t"] for row in at_home if row["id"] % 2} == {"west"}
    assert {row["k"] for row in at_home} == {f"u{n}" for n in range(7)}
    (letter,) = find_letters(broker.settings, f"{unique}.dead_letters", unique)
    assert (letter.topic, letter.value) == ("west", b"broken")
    assert summary.pipelines[unique].counters["dead_letter"] == 1
    newest = newest_rows(planned.plan, planned.plan.sinks[1], config, 1)
    assert newest.rows[0]["id"] % 3 == 0
