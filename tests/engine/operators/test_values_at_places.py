"""A row sees the value of its own key at its place, among many that change in the same batch."""

# pyright: basic

import json

import numpy as np
import pyarrow as pa
import pytest

from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.runtime.plans_here import lookup_plan
from tests.engine.runtime.records_here import records

PLAN = lookup_plan("p", "events", "profiles", "out", smart=True)
EVENTS = 24_000
LEAD = 10
"""Users that events name before they are there."""


@pytest.mark.parametrize("seed", range(3))
def test_no_row_gets_the_value_of_another_key(seed):
    """Each user is there once, and some events name it before."""
    rng, users = np.random.default_rng(seed), 1_500
    there = np.arange(EVENTS) * users // EVENTS
    named = np.minimum(np.maximum(there - 100, 0) + rng.integers(0, 101 + LEAD, EVENTS), users - 1)
    events = records("events", [{"id": f"{1000 + n}", "n": f"{i}"} for i, n in enumerate(named)])
    profiles = records("profiles", [{"id": f"{1000 + n}", "tier": f"{n}"} for n in range(users)])
    batch = pa.concat_tables(
        [
            at(events, 1_000 + np.arange(EVENTS)),
            at(profiles, 1_000 + np.arange(users) * EVENTS // users),
        ]
    )
    run = LocalPipeline(PLAN, {"events": [0], "profiles": [0]}).run(batch, 100_000)
    rows = [json.loads(value) for value in run.output["value"].to_pylist()]
    assert len(rows) == EVENTS
    assert [row for row in rows if row["tier"] != f"{int(row['id']) - 1000}"] == []


@pytest.mark.parametrize("users", [4, 200, 2_000])  # a value of each 3_000, 60 or 6 times
def test_a_row_sees_the_newest_value_of_its_key(users):
    rng, changes = np.random.default_rng(users), 12_000
    named, changed = rng.integers(0, users, EVENTS), rng.integers(0, users, changes)
    times = 1_000 + np.arange(changes) * EVENTS // changes
    events = records("events", [{"id": f"u{n}", "n": f"{i}"} for i, n in enumerate(named)])
    profiles = records("profiles", [{"id": f"u{n}", "tier": f"{i}"} for i, n in enumerate(changed)])
    batch = pa.concat_tables([at(events, 1_000 + np.arange(EVENTS)), at(profiles, times)])
    plan = lookup_plan("p", "events", "profiles", "out")
    run = LocalPipeline(plan, {"events": [0], "profiles": [0]}).run(batch, 100_000)
    found = {int(row["n"]): row["tier"] for row in map(json.loads, run.output["value"].to_pylist())}
    newest, expected, change = {}, {}, 0
    for i, n in enumerate(named):
        while change < changes and times[change] <= 1_000 + i:  # dimensions come first
            newest[changed[change]] = f"{change}"
            change += 1
        expected[i] = newest.get(n)
    assert found == expected


def at(table, times):
    return table.set_column(3, table.schema.field(3), pa.array(times, pa.int64()))
