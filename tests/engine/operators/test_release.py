"""Rows leave a join that looks up alike, whether tables are made for them or not."""

# pyright: basic

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.join import keyed_join
from kaflow_engine.operators.join.direct.lookup_join import Settled
from kaflow_engine.operators.join.direct.release import Released, release
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.runtime.records_here import records

SCHEMAS = {
    "events": (Column("id", "VARCHAR"), Column("n", "VARCHAR")),
    "profiles": (Column("id", "VARCHAR"), Column("tier", "VARCHAR")),
    "limits": (Column("id", "VARCHAR"), Column("most", "VARCHAR")),
}
ONE = "SELECT e.id, e.n, p.tier FROM events e {join} profiles p ON e.id = p.id"
TWO = (
    "SELECT e.id, e.n, p.tier, l.most FROM events e {join} profiles p ON e.id = p.id "
    "LEFT JOIN limits l ON e.id = l.id"
)
WAITS = {"type": "smart", "require": ["tier"], "on_expiry": "emit"}
BOTH = {"type": "smart", "require": ["tier", "most"], "on_expiry": "dead_letter"}
FAILS = "SELECT e.id, CAST(e.n AS INTEGER) + CAST(p.tier AS INTEGER) AS n, p.tier "
FAILS += "FROM events e LEFT JOIN profiles p ON e.id = p.id"
FILTERED = ONE + " WHERE p.tier <> '3'"
TOMBSTONE, VALUES = 7, {6: "no number"}
PLANS = {
    "at once": (TWO.format(join="LEFT JOIN"), {}),
    "left": (ONE.format(join="LEFT JOIN"), WAITS),
    "inner": (ONE.format(join="JOIN"), {"type": "smart", "on_expiry": "dead_letter"}),
    "two": (TWO.format(join="LEFT JOIN"), BOTH),
    "filtered": (FILTERED.format(join="LEFT JOIN"), WAITS),
    "fails": (FAILS, {"type": "smart", "require": ["n"], "on_expiry": "drop"}),
}

NEEDED = {"at once": ()}
"""Nothing waits there."""


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("seed", range(2))
def test_rows_leave_as_with_tables(name, seed, monkeypatch):
    counts = Counter()

    def counting(work, moved, settled, counters):
        found = release(work, moved, settled, counters)
        counts["pending"] += settled.pending.num_rows
        counts["released"] += sum(table.num_rows for table in found.rows)
        return found

    monkeypatch.setattr(keyed_join, "release", counting)
    found = outcome(name, seed)
    monkeypatch.setattr(keyed_join, "settle_at_once", nothing_at_once)
    monkeypatch.setattr(keyed_join, "release", nothing_released)
    assert found == outcome(name, seed)
    assert all(counts[each] for each in NEEDED.get(name, ("pending", "released")))


def nothing_at_once(work, here, moved, counters):
    return Settled(rows=[], left=here, pending=here.slice(0, 0))


def nothing_released(work, moved, settled, counters):
    return Released(rows=[], left=settled.left, done=pa.array([], pa.binary()))


def outcome(name, seed):
    """Rows in order, counters and watermarks of some batches."""
    query, emission = PLANS[name]
    spec = {"name": "p", "query": query, "partitions": 2}
    spec |= {"emission": emission} if emission else {}
    spec["output"] = {"topic": "out", "format": "json", "key": "id"}
    spec["dead_letters"] = {"topic": "out.dead"}
    spec["state"] = {"dimensions": [t for t in ("profiles", "limits") if t in query]}
    spec["state"]["events"] = {"default_ttl": "3s"}
    topics = ["events", *spec["state"]["dimensions"]]
    schemas = {topic: SCHEMAS[topic] for topic in topics}
    plan = build_plan(PipelineSpec.model_validate(spec), Config(), schemas).plan
    run = LocalPipeline(plan, {topic: [0] for topic in topics})
    rng, found, offsets = np.random.default_rng(seed), [], Counter()
    for number in range(6):
        made = []
        for topic in topics:
            times = 1_000 * number + np.sort(rng.integers(0, 1_500, 60))
            made.append(batch_of(topic, times, offsets[topic], rng))
            offsets[topic] += len(times)
        done = run.run(pa.concat_tables(made), 100_000 + number)
        found.append((done.output.to_pylist(), dict(done.counters), dict(done.watermarks)))
    return found


def batch_of(topic, times, first, rng):
    """Records of some users, who come again; of dimensions, some are tombstones."""
    name = SCHEMAS[topic][1].name
    users, values = rng.integers(0, 60, len(times)), rng.integers(0, 8, len(times)).tolist()
    rows = [
        {"id": f"u{user}", name: VALUES.get(value, str(value))}
        for user, value in zip(users, values, strict=True)
    ]
    table = records(topic, rows)
    gone = pa.array([topic != "events" and value == TOMBSTONE for value in values])
    columns = {
        "offset": pa.array(first + np.arange(len(times))),
        "timestamp": pa.array(times, pa.int64()),
        "value": pc.if_else(gone, None, table["value"]),
    }
    for column, found in columns.items():
        at = table.column_names.index(column)
        table = table.set_column(at, table.schema.field(at), found)
    return table
