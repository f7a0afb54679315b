"""Many groups that come and go leave nothing behind; `KAFLOW_GROUPS=1000000` makes more of them."""

# pyright: basic

import os
from collections import Counter

import pytest

from tests.engine.operators.aggregate.flows import COUNTS, TUMBLE, Running, aggregate_of, flow

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


def test_large_batches_in_windows_that_begin_and_in_windows_that_are_there():
    """A batch has rows of the window before, which has groups, and of one that has none yet."""
    run = Running(flow(aggregate_of(1, True, {"n": "count(*)"}, TUMBLE, grace=10_000)))
    counted, left = Counter(), []
    for minute in range(4):
        old = [((minute - 1) * 60_000 + 59_000, f"k{n}", 1) for n in range(1000)] * (minute > 0)
        new = [(minute * 60_000 + n, f"k{n}", 1) for n in range(500, 2000)]
        counted.update((ts // 60_000 * 60_000, key) for ts, key, _ in (*old, *new))
        left += run.batch(*old, *new)
    left += run.end()
    assert {(int(row[1]), row[0]): row[-1] for row in left} == {
        (start, key): [count] for (start, key), count in counted.items()
    }
    assert len(left) == len(counted)
    assert run.entries == 0
