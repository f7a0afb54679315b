"""Whatever happens at whichever step of a batch, readers see the rows of a run without it.

Without Spark, so that every step can be tried; `test_killed.py` kills the real thing.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from kaflow_engine.errors import SinkError, StateError
from kaflow_engine.runtime.crash import CrashPoint
from tests.acceptance.crash_pipeline import create_outputs, delivered, log_of

pytestmark = pytest.mark.kafka

POINTS = get_args(CrashPoint)
ONCE_PER_RUN = ("before_slot", "slot_claimed")
"""They are passed at the first delivery of a run, the others in batch 2."""
WOKEN = POINTS[::2]
PIECE = 3_000
"""Bytes of a transaction: some rows of a batch, so that it takes several."""


def orders_for(crash_broker, order, way, points=POINTS, **more):
    """An order per crash point, each with a pipeline of its own over the same topics."""
    found = {}
    for point in points:
        name = f"{way}-{point}"
        create_outputs(crash_broker.settings, name)
        batch = "*" if point in ONCE_PER_RUN else "2"
        found[point] = replace(
            order,
            name=name,
            crash_at=f"{point}:{batch}",
            snapshots="1ms" if "snapshot" in point else "1h",
            piece=PIECE,
            **more,
        )
    return found


def run_all(forks, orders):
    return dict(zip(orders, forks.run(list(orders.values())), strict=True))


def wake_all(forks, ends):
    return dict(zip(ends, forks.wake(list(ends.values())), strict=True))


def paused(orders):
    """The same runs, each of which stops once at its point; another run does not find the file."""
    for each in orders.values():
        _file(each).write_text(f"{each.crash_at}:pause")
    return {point: replace(each, crash_at=f"@{_file(each)}") for point, each in orders.items()}


def _file(order):
    return Path(order.path) / f"{order.name}.crash"


def calm(orders, path=None):
    return {
        point: replace(order, crash_at="", path=str(path or order.path))
        for point, order in orders.items()
    }


@pytest.fixture(scope="module")
def killed(crash_broker, forks, order):
    """Runs that were killed, killed again where they got to the same point, and then left alone."""
    orders = orders_for(crash_broker, order, "killed")
    return [run_all(forks, orders), run_all(forks, orders), run_all(forks, calm(orders))]


@pytest.mark.parametrize("point", POINTS)
def test_a_run_is_killed(crash_broker, order, peace, killed, point):
    first, _, last = (ends[point] for ends in killed)
    assert (first.how, first.said) == ("killed", "")
    assert (last.how, last.said) == ("ended", "")
    name = f"killed-{point}"
    assert delivered(crash_broker.settings, name, log_of(Path(order.path), name)) == peace


@pytest.fixture(scope="module")
def restarted(crash_broker, forks, order):
    """Runs that were at the point when the broker was killed and came back."""
    stopped = run_all(forks, paused(orders_for(crash_broker, order, "restarted", staged=True)))
    crash_broker.kill()
    crash_broker.start()
    return [stopped, wake_all(forks, stopped)]


@pytest.mark.parametrize("point", POINTS)
def test_the_broker_is_restarted(crash_broker, order, peace, restarted, point):
    stopped, last = (ends[point] for ends in restarted)
    assert stopped.how == "stopped"
    assert (last.how, last.said) == ("ended", "")
    name = f"restarted-{point}"
    assert delivered(crash_broker.settings, name, log_of(Path(order.path), name)) == peace


@pytest.fixture(scope="module")
def woken(crash_broker, forks, order, tmp_path_factory):
    """Runs that slept while another host, with a copy of their state, did all there was to do."""
    orders = orders_for(crash_broker, order, "woken", WOKEN)
    stopped = run_all(forks, paused(orders))
    create_outputs(crash_broker.settings, "neighbour")
    alone = [calm(orders)["before_commit"], replace(order, name="neighbour")]
    refused, neighbour = forks.run(alone)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for each in orders.values():
        shutil.copytree(Path(each.path) / each.name, elsewhere / each.name)
    others = run_all(forks, calm(orders, elsewhere))
    return [stopped, others, wake_all(forks, stopped)], elsewhere, refused, neighbour


@pytest.mark.parametrize("point", WOKEN)
def test_a_run_sleeps_through_its_successor(crash_broker, peace, woken, point):
    runs, elsewhere, *_ = woken
    stopped, other, last = (ends[point] for ends in runs)
    assert stopped.how == "stopped"
    assert (other.how, other.said) == ("ended", "")
    name = f"woken-{point}"
    assert delivered(crash_broker.settings, name, log_of(elsewhere, name)) == peace
    assert last.how == "ended"
    assert last.exit_code == SinkError.exit_code, last
    assert "has taken over" in last.said


def test_a_run_that_sleeps_still_holds_its_state(order, woken):
    runs, _, refused, _ = woken
    assert refused.exit_code == StateError.exit_code
    pid = runs[0]["before_commit"].pid
    assert (
        f"another run holds '{order.path}/woken-before_commit': process {pid} on " in refused.said
    )


def test_open_transactions_of_others_hold_no_pipeline_back(crash_broker, order, peace, woken):
    neighbour = woken[-1]
    assert (neighbour.how, neighbour.said) == ("ended", "")
    log = log_of(Path(order.path), "neighbour")
    assert delivered(crash_broker.settings, "neighbour", log) == peace
