"""Outputs that read other topics, one a union, on Spark: each row once, also after a kill."""
# pyright: basic

import json
from collections import Counter

import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.flow.graph import table_sinks, topic_sinks
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import share
from tests.acceptance.run_child import killed_at
from tests.acceptance.test_backfill import by_key, halves
from tests.acceptance.three_days import CLICKS, DAYS, SECOND, config_for, load

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

CLICKED = range(DAYS * 144)
VIEWED = [f"w{n}" for n in CLICKED if n % 2]


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "chains")
    return "chains"


@pytest.fixture
def config(broker, tmp_path):
    more = {"max_records": 150, "warehouse": str(tmp_path / "warehouse")}
    return config_for(broker, tmp_path / "state", **more)


def spec_of(name, topics):
    """Plan clicks with their users into a topic, views into a table, and both into one topic."""
    clicks, views, users = (f'"{topics}.{topic}"' for topic in ("clicks", "views", "users"))
    joined = f"SELECT c.id, c.u, s.v FROM {clicks} c LEFT JOIN {users} s ON c.u = s.u"
    both = f"SELECT u, id::VARCHAR AS what FROM {clicks} UNION ALL SELECT u, v FROM {views}"
    columns = {"columns": {"u": "VARCHAR", "v": "VARCHAR"}}
    return PipelineSpec.model_validate(
        {
            "name": name,
            "outputs": [
                {"query": joined, "topic": f"{name}.joined", "key": "id"},
                {"query": f"SELECT u, v FROM {views}", "table": name, "interval": "100ms"},
                {"query": both, "topic": f"{name}.both", "key": "u"},
            ],
            "topics": {
                f"{topics}.clicks": CLICKS,
                f"{topics}.views": columns,
                f"{topics}.users": columns,
            },
            "state": {"dimensions": [f"{topics}.users"]},
        }
    )


def written(plan, broker):
    """Return what is in each output, with how often it is there, and the dead letters."""
    joined, both = (
        [json.loads(value) for value in read_all(broker.settings, sink.topic)["value"].to_pylist()]
        for sink in topic_sinks(plan)
    )
    (sink,) = table_sinks(plan)
    return (
        Counter(row["id"] for row in joined),
        Counter(DeltaTable(sink.table.path).to_pyarrow_table()["v"].to_pylist()),
        Counter(row["what"] for row in both),
        read_all(broker.settings, plan.dead_letter_topic).num_rows,
    )


WHOLE = (Counter(CLICKED), Counter(VIEWED), Counter([*map(str, CLICKED), *VIEWED]), 2)


@pytest.mark.parametrize("place", share([("committed", 3), ("table_taken", 3)], 1), ids=str)
def test_each_row_is_once_in_each_output(broker, spark, topics, config, unique, place):
    from kaflow_engine.runtime.application import run_pipelines

    spec = spec_of(unique, topics)
    killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)
    summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    assert written(planned.plan, broker) == WHOLE
    counters = summary.pipelines[unique].counters
    # clicks drive two chains, and each of them counts the two that cannot be decoded
    assert counters["read"] == 2 * (len(CLICKED) + 2) + len(VIEWED)
    assert counters["emitted"] == 2 * len(CLICKED) + len(VIEWED)
    assert counters["dead_letter"] == 4


def test_a_backfill_writes_the_rows_of_each_driving_topic(broker, spark, topics, config, unique):
    from kaflow_engine.runtime.application import run_backfill, run_pipelines

    (planned,) = prepare([spec_of(unique, topics)], config)
    plan = planned.plan
    run_pipelines([plan], config, until_caught_up=True, spark=spark)
    assert written(plan, broker) == WHOLE
    (table,) = table_sinks(plan)
    DeltaTable(table.table.path).delete("_day = '2026-01-02'")
    summary = run_backfill(plan, config, SECOND, spark=spark)
    assert summary.pipelines[plan.name].ending == "caught up"
    assert written(plan, broker)[1] == Counter(VIEWED)
    for sink in topic_sinks(plan):
        streamed, again = halves(broker, sink.topic)
        wanted = [row for row in streamed if SECOND.start <= row[0] < SECOND.end]
        assert len(wanted) >= 144
        assert by_key(again) == by_key(wanted)
