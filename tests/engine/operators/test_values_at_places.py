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
USERS = 1_500
EVENTS = 24_000
LEAD = 10
"""Users that events name before they are there."""


@pytest.mark.parametrize("seed", range(3))
def test_no_row_gets_the_value_of_another_key(seed):
    rng = np.random.default_rng(seed)
    there = np.arange(EVENTS) * USERS // EVENTS
    named = np.minimum(np.maximum(there - 100, 0) + rng.integers(0, 101 + LEAD, EVENTS), USERS - 1)
    events = records("events", [{"id": f"{1000 + n}", "n": f"{i}"} for i, n in enumerate(named)])
    profiles = records("profiles", [{"id": f"{1000 + n}", "tier": f"{n}"} for n in range(USERS)])
    batch = pa.concat_tables(
        [
            at(events, 1_000 + np.arange(EVENTS)),
            at(profiles, 1_000 + np.arange(USERS) * EVENTS // USERS),
        ]
    )
    run = LocalPipeline(PLAN, {"events": [0], "profiles": [0]}).run(batch, 100_000)
    rows = [json.loads(value) for value in run.output["value"].to_pylist()]
    assert len(rows) == EVENTS
    assert [row for row in rows if row["tier"] != f"{int(row['id']) - 1000}"] == []


def at(table, times):
    return table.set_column(3, table.schema.field(3), pa.array(times, pa.int64()))
