"""What a pipeline does about an attempt that ends in an error; no Spark and no broker run."""
# pyright: basic

import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kaflow_engine.errors import DrainIncomplete, KaflowError, TakenOver
from kaflow_engine.model.config import Config
from kaflow_engine.runtime import application, restart_policy
from kaflow_engine.runtime.batch.progress import Watch
from kaflow_engine.runtime.batch.stop import Limits
from kaflow_engine.runtime.failures.failures import SparkEnded
from kaflow_engine.runtime.pipeline import PipelineRun
from kaflow_engine.state.storage.lease import Leases, find_holder
from tests.engine.runtime.plans_here import lookup_plan

PLAN = lookup_plan("p", "events", "profiles", "out")


def run(
    path: Path,
    limits: Limits,
    attempts: list[Any],
    monkeypatch: Any,
    seen: Any = None,
    closed: Any = None,
    **more: Any,
) -> str:
    """Run a pipeline whose attempts end as listed, and return how it ended.

    Args:
        closed: Is told who has the lease when the receivers of its sources end.
    """

    def attempt(self: PipelineRun, *about: object) -> str:
        self.watch.say(state="running")
        if seen is not None:
            seen.append(self.spark)
        end = attempts.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setattr(PipelineRun, "attempt", attempt)
    monkeypatch.setattr(restart_policy, "_BACKOFF_S", 0.0)
    config = Config.model_validate({"state": {"rocksdb": {"path": str(path)}}})
    found = PipelineRun(
        spark=None,  # type: ignore[arg-type]
        plan=PLAN,
        config=config,
        limits=limits,
        watch=Watch("p", lambda progress: None),
        **more,
    )
    receivers = {"p": ExitStack()}
    receivers["p"].callback(lambda: closed is not None and closed.append(find_holder(path / "p")))
    with Leases(path, ["p"]).take() as held:
        return application._supervise([found], held, receivers, limits, 60.0).pipelines["p"].ending


def test_a_stop_that_does_not_finish_in_time_says_so_and_keeps_the_lease(tmp_path, monkeypatch):
    limits = Limits()
    limits.stop.set()
    with pytest.raises(DrainIncomplete) as raised:
        run(tmp_path, limits, [DrainIncomplete("batch 2 did not end"), "drained"], monkeypatch)
    assert raised.value.exit_code == 15
    assert find_holder(tmp_path / "p") is not None


def test_a_batch_that_is_cut_off_keeps_the_lease(tmp_path, monkeypatch):
    limits = Limits()
    limits.stop.set()
    limits.overdue.set()  # no one waits, and Spark is stopped under the batch
    with pytest.raises(DrainIncomplete):
        run(tmp_path, limits, [SparkEnded("gone"), "drained"], monkeypatch)
    assert find_holder(tmp_path / "p") is not None


def test_after_the_end_of_spark_an_attempt_gets_another_session(tmp_path, monkeypatch):
    sessions = ["first", "second"]
    seen = []
    ends = [SparkEnded("gone"), "caught up"]
    kinds = {"newest": lambda: sessions.pop(0)}
    assert run(tmp_path, Limits(), ends, monkeypatch, seen, **kinds) == "caught up"
    assert seen == ["first", "second"]


def test_a_failure_after_a_stop_lets_go_of_the_lease(tmp_path, monkeypatch):
    limits = Limits()
    limits.stop.set()
    assert run(tmp_path, limits, [KeyError("x")], monkeypatch) == "drained"
    assert find_holder(tmp_path / "p") is None


def test_a_run_that_was_replaced_ends_and_one_that_failed_goes_on(tmp_path, monkeypatch):
    ends = [KeyError("has taken over"), TakenOver("x"), "caught up"]
    with pytest.raises(KaflowError, match="x"):
        run(tmp_path, Limits(), ends, monkeypatch)
    assert ends == ["caught up"]


def test_who_waits_too_long_for_a_stop_says_so(tmp_path, monkeypatch):
    never, limits = threading.Event(), Limits()
    held = Leases(tmp_path, ["p"])
    slow = SimpleNamespace(plan=PLAN, run=never.wait)
    limits.stop.set()
    monkeypatch.setattr(application, "_GRACE_S", 0.0)
    try:
        with pytest.raises(DrainIncomplete, match="'p' did not stop within 0 s"):
            application._supervise([slow], held, {"p": ExitStack()}, limits, 0.0)
        assert limits.overdue.is_set()
    finally:
        never.set()


@pytest.mark.parametrize("end", ["drained", TakenOver("another run has begun")])
def test_receivers_end_before_the_lease_is_given_back(tmp_path, monkeypatch, end):
    holders: list[Any] = []
    with suppress(TakenOver):
        run(tmp_path, Limits(), [end], monkeypatch, closed=holders)
    assert len(holders) == 1
    assert holders[0] is not None
    assert find_holder(tmp_path / "p") is None
