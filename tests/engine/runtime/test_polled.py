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
        self.finite, self.ended = set(), set()
        self.inputs = SimpleNamespace(
            named={},
            partitions=lambda plan: self.counts,
            finite=lambda names: frozenset(names) & self.finite,
            ended=lambda names: set(names) <= self.ended,
        )
        self.ends = SimpleNamespace(ask=self._ask)
        self.limits = SimpleNamespace(stop=threading.Event())
        self.limits.stop.wait = lambda seconds: None
        self.runner = SimpleNamespace(clock=lambda: 0)
        self.watch = SimpleNamespace(look=lambda: None)
        self.keeps_up = True

    @property
    def ending(self):
        return "drained" if len(self.goals) == self._most else None

    def _ask(self, places):
        if not places:
            return {}
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
    assert PolledStream(run, run.counts, 0).follow(goal, frozenset(run.finite)) == "caught up"
    assert run.goals == [goal]
    assert PolledStream(run, run.counts, 0).follow(goal, frozenset(run.finite)) == "caught up"
    assert run.goals == [goal]


def test_it_reads_what_is_new_until_it_is_stopped():
    ends = [
        {"t": {0: 0}, "s": {0: 0}},
        {"t": {0: 2}, "s": {0: 0}},
        {"t": {0: 2}, "s": {0: 0}},
        {"t": {0: 2}, "s": {0: 9}},
    ]
    run = FakeRun(iter(ends), most=2)
    assert PolledStream(run, run.counts, 0).follow(None, frozenset(run.finite)) == "drained"
    assert run.goals == [ends[1], ends[3]]


@pytest.mark.parametrize(("keeps_up", "waited"), [(True, [60.0]), (False, [])])
def test_records_gather_only_where_the_stream_keeps_up(monkeypatch, keeps_up, waited):
    monkeypatch.setattr(polled, "gathered_for", lambda plan: 60_000)
    run = FakeRun(iter([{"t": {0: 3}, "s": {0: 0}}]), most=1)
    run.keeps_up, found = keeps_up, []
    run.limits.stop.wait = found.append
    assert PolledStream(run, run.counts, 0).follow(None, frozenset(run.finite)) == "drained"
    assert found == waited


def test_partitions_that_are_added_are_read_from_their_start(monkeypatch):
    passed = iter(range(0, 1000, 20))
    monkeypatch.setattr(polled.time, "monotonic", lambda: next(passed))
    grown = {"t": {0: 1, 1: 4}, "s": {0: 0}}
    run = FakeRun(iter([{"t": {0: 1}, "s": {0: 0}}, grown]), most=2)
    stream = PolledStream(run, dict(run.counts), 0)
    run.counts = {"t": 2, "s": 1}
    assert stream.follow(None, frozenset(run.finite)) == "drained"
    assert run.asked == [{"t": [0], "s": [0]}, {"t": [0, 1], "s": [0]}]
    assert run.goals[-1] == grown


class Tables(FakeRun):
    """Reads sources that grow page by page to an end that is there already."""

    def __init__(self, ends, finite, topic=None):
        super().__init__(None)
        self.whole, self.found, self.topic = ends, dict.fromkeys(ends, 0), topic
        self.finite = set(finite)
        self.ticks = []
        self.standing = replace(self.standing, offsets={name: {0: 0} for name in ends})
        self.counts = dict.fromkeys(ends, 1)

    def _ask(self, places):
        self.asked.append(set(places))
        for name in set(places) & self.finite:
            self.found[name] = min(self.whole[name], self.standing.offsets[name][0] + 2)
        self.found |= {name: self.whole[name] for name in set(places) - self.finite}
        return {name: {0: self.found[name]} for name in places}

    def read_to(self, goal):
        self.goals.append({name: ps[0] for name, ps in goal.items()})
        at = {name: goal.get(name, ps) for name, ps in self.standing.offsets.items()}
        self.standing = replace(self.standing, offsets=at)
        self.ended = {n for n in self.finite if at[n][0] == self.whole[n]}
        if self.topic and self.topic in self.ended:  # what follows its phases begins
            self.finite, self.ended = self.finite - {self.topic}, self.ended - {self.topic}
            self.whole = {**self.whole, self.topic: 50}


def test_a_job_ends_with_its_tables(monkeypatch):
    closed = []
    monkeypatch.setattr(polled, "end_inputs", closed.append)
    run = Tables({"t": 5, "s": 3}, finite=("t", "s"))
    assert PolledStream(run, run.counts, 0).follow(None, frozenset(run.finite)) == "caught up"
    assert run.goals == [{"t": 2, "s": 2}, {"t": 4, "s": 3}, {"t": 5, "s": 3}]
    assert closed == [run]


@pytest.mark.parametrize("finite", [("t", "s"), ("t",)])
def test_a_table_is_read_to_its_end_beside_what_has_none(monkeypatch, finite):
    closed = []
    monkeypatch.setattr(polled, "end_inputs", closed.append)
    run = Tables({"t": 5, "s": 3}, finite=finite)
    asked = {"t": {0: 2}, "s": {0: 3}}
    assert PolledStream(run, run.counts, 0).follow(asked, frozenset(run.finite)) == "caught up"
    assert run.goals[-1] == {"t": 5, "s": 3}
    assert closed == ([run] if len(finite) == 2 else [])
    assert set().union(*run.asked) == set(finite)  # of the others it is known where to end


def test_a_topic_behind_phases_is_read_to_the_end_that_it_has_then(monkeypatch):
    monkeypatch.setattr(polled, "end_inputs", lambda run: pytest.fail("the topic has no end"))
    run = Tables({"t": 5}, finite=("t",), topic="t")
    assert (
        PolledStream(run, run.counts, 0).follow({"t": {0: 2}}, frozenset(run.finite)) == "caught up"
    )
    assert run.goals == [{"t": 2}, {"t": 4}, {"t": 5}, {"t": 50}]


def test_a_topic_is_read_whose_phases_ended_with_an_open_batch(monkeypatch):
    monkeypatch.setattr(polled, "end_inputs", lambda run: pytest.fail("the topic has no end"))
    run = Tables({"t": 5}, finite=("t",), topic="t")
    finite, asked = frozenset(run.finite), {"t": {0: 5}}  # as it was before the batch was finished
    run.read_to(asked)
    run.goals.clear()
    assert PolledStream(run, run.counts, 0).follow(asked, finite) == "caught up"
    assert run.goals == [{"t": 50}]
