"""The budget of dead letters."""

from dataclasses import replace

import pytest

from kaflow_engine.errors import LimitReached
from kaflow_engine.runtime.batch.dead_letter_limit import check_budget
from tests.engine.runtime.plans_here import filter_plan


@pytest.mark.parametrize(
    ("count", "rate", "read", "dead", "stops"),
    [
        (None, None, 1000, 1000, False),
        (3, None, 10, 3, False),
        (3, None, 10, 4, True),
        (None, 0.1, 1000, 100, False),
        (None, 0.1, 1000, 101, True),
        (None, 0.1, 50, 50, False),
    ],
)
def test_budget(count, rate, read, dead, stops):
    plan = replace(filter_plan("p", "events", "out"), max_dead_letters=count, max_dead_rate=rate)
    if not stops:
        check_budget(plan, read, dead)
        return
    with pytest.raises(LimitReached, match="more than dead_letters"):
        check_budget(plan, read, dead)
