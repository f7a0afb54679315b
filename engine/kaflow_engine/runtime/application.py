"""Runs pipelines in one Spark application, each supervised in a thread of its own."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from kaflow_engine.errors import DrainIncomplete, KaflowError
from kaflow_engine.model.config import Config
from kaflow_engine.operators.params import Plan
from kaflow_engine.runtime.failures import to_error
from kaflow_engine.runtime.jars import spark_kafka_jars
from kaflow_engine.runtime.java import find_java
from kaflow_engine.runtime.memory import release_now_and_then
from kaflow_engine.runtime.pipeline import PipelineRun
from kaflow_engine.runtime.progress import PipelineSummary, Progress, RunSummary
from kaflow_engine.runtime.session import start_session
from kaflow_engine.runtime.state_start import PlanChange, refuse_change
from kaflow_engine.runtime.stop import Limits
from kaflow_engine.runtime.watch import OnProgress, Watch

_POLL_S = 0.1
_GRACE_S = 10.0


def run_pipelines(
    plans: Sequence[Plan],
    config: Config,
    *,
    until_caught_up: bool = False,
    max_records: int | None = None,
    on_progress: OnProgress = lambda progress: None,
    stop: threading.Event | None = None,
    change: PlanChange = refuse_change,
    spark: SparkSession | None = None,
) -> RunSummary:
    """Run pipelines until each has ended.

    A pipeline that fails does not stop the others; its error is raised when they have ended.

    Args:
        plans: What to run.
        config: The same for all of them.
        until_caught_up: End each at the ends that its topics have now.
        max_records: End each after about so many records.
        on_progress: Told of every change, by the threads of the pipelines.
        stop: Set it to drain: each finishes its batch and ends.
        change: Asked when a state was made for another plan.
        spark: A session to use; otherwise one is started and stopped again.

    Raises:
        KaflowError: What ended the first pipeline that failed.
        DrainIncomplete: A batch did not end within `drain_deadline` after the stop.
    """
    limits = Limits(
        until_caught_up=until_caught_up,
        max_records=max_records,
        stop=stop if stop is not None else threading.Event(),
    )
    for plan in plans:
        on_progress(Progress(pipeline=plan.name))
    session = spark or start_session(config.spark, find_java(), spark_kafka_jars())
    try:
        runs = [
            PipelineRun(
                spark=session,
                plan=plan,
                config=config,
                limits=limits,
                watch=Watch(plan.name, on_progress),
                change=change,
            )
            for plan in plans
        ]
        return _supervise(runs, limits, config.drain_deadline / 1000)
    finally:
        if spark is None:
            session.stop()


@dataclass(slots=True)
class _Outcomes:
    summaries: dict[str, PipelineSummary] = field(default_factory=dict[str, PipelineSummary])
    errors: list[KaflowError] = field(default_factory=list[KaflowError])


def _supervise(runs: Sequence[PipelineRun], limits: Limits, deadline: float) -> RunSummary:
    outcomes = _Outcomes()
    threads = [
        threading.Thread(
            target=_run, args=(run, outcomes), name=f"kaflow-{run.plan.name}", daemon=True
        )
        for run in runs
    ]
    for thread in threads:
        thread.start()
    asked: float | None = None
    while any(thread.is_alive() for thread in threads):
        time.sleep(_POLL_S)
        release_now_and_then()
        if limits.stop.is_set():
            asked = asked or time.monotonic()
            if time.monotonic() - asked > deadline + _GRACE_S:
                alive = ", ".join(f"'{r.plan.name}'" for r in runs if _alive(r, threads))
                raise DrainIncomplete(
                    f"{alive} did not stop within {deadline:g} s",
                    hint="the open batch runs again at the next start; "
                    "raise 'drain_deadline' to wait longer",
                )
    if outcomes.errors:
        raise outcomes.errors[0]
    return RunSummary(pipelines=outcomes.summaries)


def _run(run: PipelineRun, outcomes: _Outcomes) -> None:
    try:
        outcomes.summaries[run.plan.name] = run.run()
    except Exception as error:
        outcomes.errors.append(to_error(error, f"running pipeline '{run.plan.name}'"))


def _alive(run: PipelineRun, threads: Sequence[threading.Thread]) -> bool:
    return any(t.is_alive() and t.name == f"kaflow-{run.plan.name}" for t in threads)
