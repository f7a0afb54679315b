"""Work beside the thread that reports to Dagster."""
# pyright: basic

from threading import Event

from kaflow_dagster.runs import background
from kaflow_dagster.runs.background import Background
from kaflow_engine.errors import DrainIncomplete


def test_work_that_does_not_stop_in_time_is_an_error(monkeypatch):
    monkeypatch.setattr(background, "GRACE_S", 0.0)
    never = Event()
    try:
        with Background(lambda stop: never.wait() and None, 0) as work:
            pass
        assert isinstance(work.error, DrainIncomplete)
    finally:
        never.set()


def test_work_that_ends_has_no_error():
    with Background(lambda stop: stop.wait() and None, 0) as work:
        pass
    assert work.error is None
