"""Two topics and a table of one pipeline, on Spark: each row once, wherever it is killed."""
# pyright: basic

import json
from collections import Counter

import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.kafka.output.rows import decode_rows
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.flow.graph import columns_of, table_sinks, topic_sinks
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.newest_rows import newest_rows
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.test_backfill import halves
from tests.acceptance.three_days import CLICKS, DAYS, SECOND, config_for, load

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

CLICKED = range(DAYS * 144)
FEW = [n for n in CLICKED if n % 3 == 0]


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "several")
    return "several"


@pytest.fixture
def config(broker, registry, tmp_path):
    kafka = {"brokers": broker.bootstrap, "schemaRegistry": registry.url}
    more = {"kafka": kafka, "max_records": 150, "warehouse": str(tmp_path / "warehouse")}
    return config_for(broker, tmp_path / "state", **more)


def spec_of(name, topics):
    """Plan clicks with what is known of users into two topics and a table."""
    clicks, known = f'"{topics}.clicks"', f'"{topics}.users"'
    joined = f"SELECT c.id, c.u, s.v FROM {clicks} c LEFT JOIN {known} s ON c.u = s.u"
    few = "SELECT id, v FROM joined WHERE id % 3 = 0"
    users = {"columns": {"u": "VARCHAR", "v": "VARCHAR"}}
    return PipelineSpec.model_validate(
        {
            "name": name,
            "relations": {"joined": {"query": joined}},
            "outputs": [
                {"from": "joined", "topic": f"{name}.all", "key": "id"},
                {"query": few, "topic": f"{name}.few", "format": "avro", "key": "id"},
                {"query": "SELECT u, id FROM joined", "table": name, "interval": "100ms"},
            ],
            "topics": {f"{topics}.clicks": CLICKS, f"{topics}.users": users},
            "state": {"dimensions": [f"{topics}.users"]},
        }
    )


def written(plan, config, broker):
    """Return the ids in each output, with how often they are there, and the dead letters."""
    found = []
    for sink in topic_sinks(plan):
        values = read_all(broker.settings, sink.topic)["value"]
        rows = decode_rows(config, sink.topic, sink.format, columns_of(plan, sink), values)
        found.append(Counter(rows.table["id"].to_pylist()))
    (sink,) = table_sinks(plan)
    found.append(Counter(DeltaTable(sink.table.path).to_pyarrow_table()["id"].to_pylist()))
    return *found, read_all(broker.settings, plan.dead_letter_topic).num_rows


KILLS = [
    ("committed", 3),  # rows of a task are in the topics, and the table lacks them
    ("table_taken", 3),  # and now the table has them, and the log does not know
    ("before_table", "*"),
]
PLACES = peace_or(KILLS, 1)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_row_is_once_in_each_output(broker, spark, topics, config, unique, place):
    from kaflow_engine.runtime.application import run_pipelines

    spec = spec_of(unique, topics)
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)
    summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    assert written(planned.plan, config, broker) == (
        Counter(CLICKED),
        Counter(FEW),
        Counter(CLICKED),
        2,
    )
    counters = summary.pipelines[unique].counters
    assert (counters["emitted"], counters["dead_letter"]) == (len(CLICKED), 2)


def test_a_backfill_writes_every_topic_and_replaces_in_the_table(
    broker, spark, topics, config, unique, monkeypatch
):
    from kaflow_engine.runtime.application import run_backfill, run_pipelines

    monkeypatch.setattr("kaflow_engine.runtime.newest_rows._TIMEOUT", 60_000)  # on a busy machine
    (planned,) = prepare([spec_of(unique, topics)], config)
    plan = planned.plan
    run_pipelines([plan], config, until_caught_up=True, spark=spark)
    run_backfill(plan, config, SECOND, spark=spark)
    for sink, ids in zip(topic_sinks(plan), (CLICKED, FEW), strict=True):
        streamed, again = halves(broker, sink.topic)
        assert (len(streamed), len(again)) == (len(ids), len([n for n in ids if 144 <= n < 288]))
    assert written(plan, config, broker)[2] == Counter(CLICKED)
    newest = [newest_rows(plan, sink, config, 3) for sink in plan.sinks]
    assert [len(each.rows) for each in newest] == [3, 3, 3]
    assert [set(json.loads(json.dumps(each.rows[0], default=str))) for each in newest] == [
        {"_partition", "_offset", "_time", "id", "u", "v"},
        {"_partition", "_offset", "_time", "id", "v"},
        {"u", "id", "_event_time", "_source_partition", "_source_offset", "_day"},
    ]
