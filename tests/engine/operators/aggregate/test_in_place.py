"""Groups in the place where their rows are: behind a join by its key, behind groups by theirs."""

# pyright: basic

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.graph import aggregates, joins, last_level
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.inspect.key_places import shard_key
from kaflow_engine.plan.evolution.diff import obstacles
from kaflow_engine.plan.evolution.evolution import inherit, migrations
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text
from kaflow_engine.state.keys import split_entry
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.operators.written import Written

pytestmark = pytest.mark.slow

START = 1_767_225_600_000
COLUMNS = {
    "e": {"k": "VARCHAR", "j": "INTEGER", "x": "DOUBLE", "n": "INTEGER"},
    "d": {"k": "VARCHAR", "j": "BIGINT", "x": "DOUBLE", "tier": "VARCHAR"},
    "b": {"k": "VARCHAR", "m": "INTEGER"},
}
LEFT = "FROM e LEFT JOIN d ON e.k = d.k"
MINUTES = "tumble(INTERVAL 1 MINUTE)"
IN_PLACE = {
    "the key of a join": f"SELECT e.k, count(*) AS c, max(d.tier) AS t {LEFT} GROUP BY e.k",
    "more than the key": f"SELECT d.tier, e.k, sum(e.n) AS s {LEFT} GROUP BY d.tier, e.k",
    "the key of the INNER side": (
        "SELECT d.k, count(*) AS c FROM e JOIN d ON e.k = d.k GROUP BY d.k"
    ),
    "two keys, in another order": (
        "SELECT e.j, e.k, count(*) AS c FROM e LEFT JOIN d ON e.k = d.k AND e.j = d.j "
        "GROUP BY e.j, e.k"
    ),
    "a key of floating point": (
        "SELECT e.x, count(*) AS c FROM e LEFT JOIN d ON e.x = d.x GROUP BY e.x"
    ),
    "windows": f"SELECT e.k, window_start, count(*) AS c {LEFT} GROUP BY e.k, {MINUTES}",
    "each row once": f"SELECT DISTINCT e.k, e.n, d.tier {LEFT}",
    "events": ("SELECT e.k, count(*) AS c, sum(b.m) AS m FROM e JOIN b ON e.k = b.k GROUP BY e.k"),
    "a second join": (
        f"SELECT e.k, count(*) AS c {LEFT.replace('e.k = d.k', 'e.x = d.x')} "
        "JOIN b ON e.k = b.k GROUP BY e.k"
    ),
}
BEHIND_GROUPS = {
    "windows of windows": (
        f"WITH w AS (SELECT k, window_start AS at, count(*) AS c FROM e GROUP BY k, {MINUTES}) "
        "SELECT k, date_trunc('hour', at) AS hour, max(c) AS most FROM w GROUP BY 1, 2"
    ),
    "windows of joined windows": (
        f"WITH w AS (SELECT e.k, window_start AS at, count(*) AS c {LEFT} GROUP BY e.k, {MINUTES}) "
        "SELECT k, date_trunc('hour', at) AS hour, max(c) AS most FROM w GROUP BY 1, 2"
    ),
    "more than the groups before": (
        "WITH g AS (SELECT k, sum(n) AS s FROM e GROUP BY k) "
        "SELECT s, k, count(*) AS c FROM g GROUP BY s, k"
    ),
}
TRAVELLING = {
    "another value": f"SELECT d.tier, count(*) AS c {LEFT} GROUP BY d.tier",
    "the key of a LEFT side": f"SELECT d.k, count(*) AS c {LEFT} GROUP BY d.k",
    "a part of the key": (
        "SELECT e.k, count(*) AS c FROM e LEFT JOIN d ON e.k = d.k AND e.j = d.j GROUP BY e.k"
    ),
    "no value": f"SELECT count(*) AS c {LEFT}",
    "records": "SELECT k, count(*) AS c FROM e GROUP BY k",
    "a key of another type": (
        "SELECT e.x, count(*) AS c FROM e LEFT JOIN d ON e.x::VARCHAR = d.tier GROUP BY e.x"
    ),
}


def planned(query, **more):
    mapping = {
        "name": "p",
        "query": query,
        "output": {"topic": "o", **({"key": "k"} if "DISTINCT" in query else {})},
        "partitions": 2,
        "state": {"dimensions": [name for name in ("d",) if f"JOIN {name} " in query]},
        **more,
    }
    schemas = {
        name: tuple(Column(n, kind) for n, kind in columns.items())
        for name, columns in COLUMNS.items()
        if f"FROM {name}" in query or f"JOIN {name} " in query
    }
    return build_plan(pipeline_from_mapping(mapping, Location("p"), {}), Config(), schemas).plan


def travelling(flow):
    """The flow with an exchange before each aggregate, as it was planned before."""
    return replace(
        flow,
        operators=tuple(
            replace(each, exchange=True, shard=None) if isinstance(each, Aggregate) else each
            for each in flow.operators
        ),
    )


def batches(flow):
    """Records with keys that repeat, are NULL and have no match, over some minutes."""
    offsets = dict.fromkeys(COLUMNS, 0)
    found = []
    for batch in range(3):
        rows = []
        for n in range(12):
            number = batch * 12 + n
            k = None if number % 5 == 0 else f"k{number % 4}"
            x = (None, 0.0, -0.0, 1.5)[number % 4]
            values = {
                "d": {"k": k, "j": number % 3, "x": x, "tier": f"t{number % 3}"},
                "e": {"k": k, "j": number % 2, "x": x, "n": number % 7},
                "b": {"k": k, "m": number},
            }
            for topic in [topic.name for topic in flow.sources]:
                value = values[topic]
                if topic == "d" and n % 3:
                    continue
                rows.append(
                    {
                        "topic": topic,
                        "partition": 0,
                        "offset": offsets[topic],
                        "timestamp": START + number * 7_000,
                        "key": None,
                        "value": json.dumps(value).encode(),
                    }
                )
                offsets[topic] += 1
        found.append(pa.Table.from_pylist(rows, schema=RECORDS))
    return found


def written(flow, *, spread, change=None):
    pipeline = LocalPipeline(flow, {t.name: [0] for t in flow.sources}, spread=spread, replay=True)
    found = []
    for number, records in enumerate(batches(flow)):
        if change is not None and number == 2:
            pipeline.go_on(change)
        found.append(pipeline.run(records, START + number * 84_000))
    found.append(pipeline.end(START + 10_000_000))
    rows = [
        (row["key"], row["timestamp"], row["value"])
        for batch in found
        for row in batch.output.to_pylist()
    ]
    return Written(rows), pipeline


def one_of(flow):
    return aggregates(flow)[-1]


@pytest.mark.parametrize("query", IN_PLACE.values(), ids=IN_PLACE)
def test_groups_behind_a_join(query):
    flow = planned(query)
    assert not one_of(flow).exchange
    assert last_level(flow) == last_level(travelling(flow)) - 1
    rows, _ = written(flow, spread=True)
    assert rows
    assert rows == written(travelling(flow), spread=True)[0]
    assert rows == written(flow, spread=False)[0]


@pytest.mark.parametrize("query", BEHIND_GROUPS.values(), ids=BEHIND_GROUPS)
def test_groups_behind_groups(query):
    flow = planned(query)
    assert not one_of(flow).exchange
    rows, _ = written(flow, spread=True)
    assert rows
    assert rows == written(travelling(flow), spread=True)[0]


@pytest.mark.parametrize("query", TRAVELLING.values(), ids=TRAVELLING)
def test_groups_elsewhere(query):
    found = one_of(planned(query))
    assert found.exchange
    assert found.shard is None


@pytest.mark.parametrize(
    "more",
    [
        {"emission": {"type": "final"}},
        {"emission": {"type": "smart", "require": []}, "query": "ledger"},
    ],
    ids=["final rows wait without a key", "a ledger has its rows elsewhere"],
)
def test_rows_that_are_not_where_their_key_is(more):
    query = (
        "SELECT e.k, window_start, count(b.m) AS c FROM e LEFT JOIN b ON e.k = b.k "
        f"GROUP BY e.k, {MINUTES}"
    )
    if more.pop("query", None):
        query = (
            "SELECT e.k, count(*) AS c FROM e JOIN b ON e.k = b.k JOIN d ON e.x = d.x "
            "GROUP BY e.k, e.x"
        )
    assert one_of(planned(query, **more)).exchange


def test_a_state_stays_where_it_is():
    """Groups that were made behind an exchange go on there, and rows of both plans agree."""
    new = planned(IN_PLACE["more than the key"])
    old = travelling(new)
    assert obstacles(old, new) == ()
    taken = inherit(old, new)
    assert one_of(taken) == one_of(old)
    assert migrations(old, taken) == ()
    assert written(old, spread=True, change=taken)[0] == written(old, spread=True)[0]
    assert inherit(new, new) == new


def test_groups_whose_join_is_gone_stay_where_they_are():
    old = planned("SELECT e.k, count(*) AS c FROM e LEFT JOIN d ON e.k = d.k GROUP BY e.k")
    new = planned("SELECT e.k, count(*) AS c FROM e LEFT JOIN d ON e.x = d.x GROUP BY e.k")
    taken = inherit(old, new)
    kept = one_of(taken)
    assert (kept.shard, kept.exchange) == (one_of(old).shard, True)
    assert any("travel to its groups" in line for line in migrations(old, taken))
    rows, pipeline = written(old, spread=True, change=taken)
    assert rows == written(travelling(old), spread=True)[0]
    states = [pipeline._world.state((kept.state, part)) for part in range(4)]
    keys = {split_entry(key)[0] for state in states for key in state.range(b"\0", None).keys}
    assert {shard_key(taken, kept.state, key[1:].decode()) for key in keys} == keys


def test_groups_behind_groups_that_stay_elsewhere_travel():
    new = planned(BEHIND_GROUPS["windows of joined windows"])
    first, last = aggregates(inherit(travelling(new), new))
    assert first.exchange
    assert last.exchange
    assert aggregates(new)[0].shard is not None


@pytest.mark.parametrize("query", [IN_PLACE["windows"], TRAVELLING["another value"]])
def test_plans_are_read_as_they_were_written(query):
    flow = planned(query)
    text = plan_text(flow)
    assert plan_of(text) == flow
    assert ('"exchange":false' in text.split('"sinks"')[0]) != one_of(flow).exchange
    assert '"shard"' not in plan_text(travelling(flow))


def test_where_the_key_of_a_group_is():
    flow = planned(IN_PLACE["more than the key"])
    state = one_of(flow).state
    behind = shard_key(flow, joins(flow)[0].state, "k1")
    assert shard_key(flow, state, '["t1","k1"]') == behind[:1] + b'["t1","k1"]'
    assert shard_key(flow, state, '["t1",null]')[:1] == b"\0"
    assert shard_key(flow, state, "not a key")[1:] == b"not a key"
