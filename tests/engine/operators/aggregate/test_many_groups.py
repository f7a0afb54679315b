"""Many groups that come and go leave nothing behind; `KAFLOW_GROUPS=1000000` makes more of them."""

# pyright: basic

import os

import pytest

from tests.engine.operators.aggregate.flows import COUNTS, Running, aggregate_of, flow

GROUPS = int(os.environ.get("KAFLOW_GROUPS", "20000"))
UPDATES = 10
HOUR = 3_600_000


@pytest.mark.slow
@pytest.mark.parametrize("leaves", ["changes", "first"])
def test_all_groups_go_when_their_time_is_over(leaves):
    calls = COUNTS if leaves == "changes" else {}
    run = Running(flow(aggregate_of(1, True, calls, ttl=HOUR, each=False, leaves=leaves)))
    for update in range(UPDATES):
        rows = run.batch(*((update, f"k{n}", update) for n in range(GROUPS)))
        assert len(rows) == (GROUPS if leaves == "changes" or update == 0 else 0)
    assert run.entries >= GROUPS
    run.batch((UPDATES + HOUR, "last", 0))
    run.batch((UPDATES + HOUR, "last", 0))
    baseline = Running(flow(aggregate_of(1, True, calls, ttl=HOUR, each=False, leaves=leaves)))
    baseline.batch((0, "last", 0))
    assert run.entries == baseline.entries
