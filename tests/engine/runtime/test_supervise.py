"""What a pipeline does about an attempt that ends in an error; no Spark and no broker run."""
# pyright: basic

import threading
from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.errors import DrainIncomplete, KaflowError, TakenOver
from kaflow_engine.model.config import Config
from kaflow_engine.runtime import patience
from kaflow_engine.runtime.pipeline import PipelineRun
from kaflow_engine.runtime.stop import Limits
from kaflow_engine.runtime.watch import Watch
from kaflow_engine.state.lease import find_holder
from tests.engine.runtime.plans_here import lookup_plan

PLAN = lookup_plan("p", "events", "profiles", "out")


def run(path: Path, stop: threading.Event, attempts: list[Any], monkeypatch: Any) -> str:
    """Run a pipeline whose attempts end as listed, and return how it ended."""

    def attempt(self: PipelineRun, *about: object) -> str:
        self.watch.say(state="running")
        end = attempts.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setattr(PipelineRun, "_attempt", attempt)
    monkeypatch.setattr(patience, "_BACKOFF_S", 0.0)
    config = Config.model_validate({"state": {"rocksdb": {"path": str(path)}}})
    found = PipelineRun(
        spark=None,  # type: ignore[arg-type]
        plan=PLAN,
        config=config,
        limits=Limits(stop=stop),
        watch=Watch("p", lambda progress: None),
    )
    return found.run().ending


def test_a_stop_that_does_not_finish_in_time_says_so_and_keeps_the_lease(tmp_path, monkeypatch):
    stop = threading.Event()
    stop.set()
    with pytest.raises(DrainIncomplete) as raised:
        run(tmp_path, stop, [DrainIncomplete("batch 2 did not end"), "drained"], monkeypatch)
    assert raised.value.exit_code == 15
    assert find_holder(tmp_path / "p") is not None


def test_a_failure_after_a_stop_lets_go_of_the_lease(tmp_path, monkeypatch):
    stop = threading.Event()
    stop.set()
    assert run(tmp_path, stop, [KeyError("x")], monkeypatch) == "drained"
    assert find_holder(tmp_path / "p") is None


def test_a_run_that_was_replaced_ends_and_one_that_failed_goes_on(tmp_path, monkeypatch):
    ends = [KeyError("has taken over"), TakenOver("x"), "caught up"]
    with pytest.raises(KaflowError, match="x"):
        run(tmp_path, threading.Event(), ends, monkeypatch)
    assert ends == ["caught up"]
