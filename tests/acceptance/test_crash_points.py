"""Whatever happens at whichever step of a batch, readers see the rows of a run without it.

Without Spark, so that every step can be tried; `test_killed.py` kills the real thing. Three steps
for topics and buckets, one for each other kind of output; `KAFLOW_KILLS=all` tries all of each.
"""

import pytest

from tests.acceptance.crash_kinds import TRIED, calm, keeps_its_promise, paused, run_all, wake_all
from tests.acceptance.kills import share

pytestmark = pytest.mark.kafka


def cases(of_stores, of_others):
    """Return kinds and steps: so many for topics and buckets, and so many for each other kind."""
    return [
        (kind, point)
        for kind, about in TRIED.items()
        for point in share(about.points, of_stores if kind in ("topic", "bucket") else of_others)
    ]


CASES = cases(3, 1)
RESTARTED = share(cases(2, 1), 5)


@pytest.fixture(scope="module")
def killed(outputs, forks):
    """Runs that were killed, killed again where they got to the same point, and then left alone."""
    orders = outputs.orders("killed", CASES)
    first, second = run_all(forks, orders), run_all(forks, orders)
    left = {case: order for case, order in orders.items() if second[case].how == "killed"}
    return orders, first, {**second, **run_all(forks, calm(left))}


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_a_run_is_killed(outputs, killed, kind, point):
    orders, first, last = killed
    assert (first[kind, point].how, first[kind, point].said) == ("killed", "")
    assert (last[kind, point].how, last[kind, point].said) == ("ended", "")
    keeps_its_promise(outputs, kind, orders[kind, point], tries=2)


@pytest.fixture(scope="module")
def restarted(outputs, forks):
    """Runs that were at the point when the broker was killed and came back."""
    orders = paused(outputs.orders("restarted", RESTARTED, staged=True, patience="5m"))
    stopped = run_all(forks, orders)
    assert not {case: end for case, end in stopped.items() if end.how != "stopped"}
    outputs.broker.kill()
    outputs.broker.start()
    return orders, wake_all(forks, stopped)


@pytest.mark.parametrize(("kind", "point"), RESTARTED)
def test_the_broker_is_restarted(outputs, restarted, kind, point):
    orders, last = restarted
    assert (last[kind, point].how, last[kind, point].said) == ("ended", "")
    keeps_its_promise(outputs, kind, orders[kind, point], tries=1)
