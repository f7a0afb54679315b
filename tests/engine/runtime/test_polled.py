"""The stream of a pipeline that asks its sources for their ends."""
# pyright: basic

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kaflow_engine.operators.watermark import WatermarkState
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.drive import polled
from kaflow_engine.runtime.drive.polled import PolledStream


class FakeRun:
    """Reads whatever there is, and stops when it has read enough."""

    def __init__(self, ends, most=None):
        self._ends, self._most = ends, most
        self.standing = Position(
            batch=0, batch_time=0, offsets={"t": {0: 0}, "s": {0: 0}}, watermark=WatermarkState()
        )
        self.goals = []
        self.counts = {"t": 1, "s": 1}
        self.asked = []
        self.plan = SimpleNamespace()
        self.inputs = SimpleNamespace(partitions=lambda plan: self.counts)
        self.ends = SimpleNamespace(ask=self._ask)
        self.limits = SimpleNamespace(stop=threading.Event())
        self.limits.stop.wait = lambda seconds: None
        self.runner = SimpleNamespace(clock=lambda: 0)

    @property
    def ending(self):
        return "drained" if len(self.goals) == self._most else None

    def _ask(self, places):
        self.asked.append({name: list(ps) for name, ps in places.items()})
        return next(self._ends)

    def read_to(self, goal):
        self.goals.append(goal)
        self.go_on(replace(self.standing, offsets=goal))

    def go_on(self, standing):
        self.standing = standing


@pytest.fixture(autouse=True)
def _no_gathering(monkeypatch):
    monkeypatch.setattr(polled, "gathered_for", lambda plan: 0)


def test_it_ends_where_it_is_said():
    goal = {"t": {0: 5}, "s": {0: 7}}
    run = FakeRun(iter(()))
    assert PolledStream(run, run.counts, 0).follow(goal) == "caught up"
    assert run.goals == [goal]
    assert PolledStream(run, run.counts, 0).follow(goal) == "caught up"
    assert run.goals == [goal]


def test_it_reads_what_is_new_until_it_is_stopped():
    ends = [
        {"t": {0: 0}, "s": {0: 0}},
        {"t": {0: 2}, "s": {0: 0}},
        {"t": {0: 2}, "s": {0: 0}},
        {"t": {0: 2}, "s": {0: 9}},
    ]
    run = FakeRun(iter(ends), most=2)
    assert PolledStream(run, run.counts, 0).follow(None) == "drained"
    assert run.goals == [ends[1], ends[3]]


def test_partitions_that_are_added_are_read_from_their_start(monkeypatch):
    passed = iter(range(0, 1000, 20))
    monkeypatch.setattr(polled.time, "monotonic", lambda: next(passed))
    grown = {"t": {0: 1, 1: 4}, "s": {0: 0}}
    run = FakeRun(iter([{"t": {0: 1}, "s": {0: 0}}, grown]), most=2)
    stream = PolledStream(run, dict(run.counts), 0)
    run.counts = {"t": 2, "s": 1}
    assert stream.follow(None) == "drained"
    assert run.asked == [{"t": [0], "s": [0]}, {"t": [0, 1], "s": [0]}]
    assert run.goals[-1] == grown
