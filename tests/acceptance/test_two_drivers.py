"""Two drivers over copies of a state directory: one of them writes, the other is refused by name.

A run falls asleep at a step, another host takes over a copy of its state and does all there is to
do, then the first one wakes up; and in the end someone starts it again over the state it has.
At two steps for each kind of output; `KAFLOW_KILLS=all` tries every step of each.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.errors import SinkError, StateError, StateHeld
from tests.acceptance.crash_kinds import (
    KINDS,
    calm,
    keeps_its_promise,
    paused,
    run_all,
    wake_all,
)
from tests.acceptance.kills import share

pytestmark = pytest.mark.kafka

LEASED = ("topic", "before_commit")
OTHERS = [
    (kind, point)
    for kind, about in KINDS.items()
    for point in share([p for p in about.points if (kind, p) != LEASED], 1)
]
CASES = [LEASED, *OTHERS]
BEHIND = [(kind, point) for kind, point in CASES if KINDS[kind].wanted is None]
"""A backfill that is done leaves nothing that a start could be behind of."""


@pytest.fixture(scope="module")
def drivers(outputs, forks, order, tmp_path_factory):
    """How the first driver ends, the second one, the first that wakes up, and its next start."""
    orders = outputs.orders("woken", CASES)
    stopped = run_all(forks, paused(orders))
    assert not {case: end for case, end in stopped.items() if end.how != "stopped"}
    refused, neighbour = forks.run([calm(orders)[LEASED], outputs.order("topic", "neighbour")])
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for directory in Path(order.path).glob("woken-*/"):
        shutil.copytree(directory, elsewhere / directory.name)
    others = run_all(forks, calm(orders, elsewhere))
    woken = wake_all(forks, stopped)
    again = run_all(forks, {case: calm(orders)[case] for case in BEHIND})
    return calm(orders, elsewhere), [stopped, others, woken, again], refused, neighbour


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_a_run_sleeps_through_its_successor(outputs, drivers, kind, point):
    orders, ends, *_ = drivers
    _, other, woken, _ = (found.get((kind, point)) for found in ends)
    assert (other.how, other.said) == ("ended", "")
    assert woken.how == "ended"
    keeps_its_promise(outputs, kind, orders[kind, point], tries=2)
    if KINDS[kind].wanted is None:
        assert woken.exit_code == SinkError.exit_code, woken
        assert "has taken over" in woken.said
    elif not KINDS[kind].table:  # the successor is done, and the topic that would tell is gone
        assert woken.exit_code in (SinkError.exit_code, StateError.exit_code), woken


@pytest.mark.parametrize(("kind", "point"), BEHIND)
def test_a_run_starts_behind_what_was_delivered(drivers, kind, point):
    _, (*_, again), *_ = drivers
    assert again[kind, point].exit_code == StateError.exit_code, again[kind, point]
    assert "was delivered" in again[kind, point].said


def test_a_run_that_sleeps_still_holds_its_state(order, drivers):
    _, (stopped, *_), refused, _ = drivers
    assert refused.exit_code == StateHeld.exit_code
    holder = f"process {stopped[LEASED].pid} on "
    assert f"another run holds '{order.path}/woken-topic-before_commit': {holder}" in refused.said


def test_open_transactions_of_others_hold_no_pipeline_back(outputs, order, drivers):
    *_, neighbour = drivers
    assert (neighbour.how, neighbour.said) == ("ended", "")
    assert outputs.read(replace(order, name="neighbour")) == outputs.in_peace("topic")
