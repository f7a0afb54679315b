"""Sources whose receivers have a thread each, and how they all end."""

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from kaflow_engine.connectors.journal import sessions
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import Line, in_threads

SOURCES = 4


def inlets() -> Sequence[Inlet]:
    return [
        cast(Inlet, SimpleNamespace(name=f"s{n}", patience=1.0, journal=SimpleNamespace()))
        for n in range(SOURCES)
    ]


def test_all_are_stopped_before_one_is_waited_for() -> None:
    together = threading.Barrier(SOURCES)
    left: list[str] = []

    def session(line: Line) -> None:
        line.pause(60)
        together.wait(5)
        left.append(line.inlet.name)

    with in_threads(inlets(), session):
        pass
    assert sorted(left) == [f"s{n}" for n in range(SOURCES)]


def test_those_that_do_not_end_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_LEAVES_S", 0.5)
    join, waits, let_go = threading.Thread.join, list[float](), threading.Event()

    def noted(thread: threading.Thread, timeout: float) -> None:
        waits.append(timeout)
        join(thread, timeout)

    with in_threads(inlets(), lambda line: cast(None, let_go.wait(60))):
        monkeypatch.setattr(threading.Thread, "join", noted)
    monkeypatch.undo()
    let_go.set()
    assert len(waits) == SOURCES
    assert sum(waits) == pytest.approx(0.5, abs=0.01)


def test_a_thread_that_cannot_begin_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    start, begun, ended = threading.Thread.start, list[str](), list[str]()

    def scarce(thread: threading.Thread) -> None:
        if len(begun) == SOURCES - 1:
            raise RuntimeError("can't start new thread")
        begun.append(thread.name)
        start(thread)

    def session(line: Line) -> None:
        line.pause(60)
        ended.append(line.inlet.name)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    with pytest.raises(RuntimeError, match="new thread"), in_threads(inlets(), session):
        pass
    assert len(ended) == SOURCES - 1
