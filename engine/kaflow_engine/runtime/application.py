"""Runs pipelines in one Spark application, each supervised in a thread of its own."""

import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from kaflow_engine.connectors.journal.receivers import receiving
from kaflow_engine.connectors.kafka.native.library import library
from kaflow_engine.connectors.kafka.oauth import java_options
from kaflow_engine.errors import DrainIncomplete, KaflowError, StateError
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.model.config import Config, SparkConfig
from kaflow_engine.runtime.batch.progress import OnProgress, Watch
from kaflow_engine.runtime.batch.stop import Limits
from kaflow_engine.runtime.drive.bounded import backfill_plan
from kaflow_engine.runtime.drive.windows import refuse_groups
from kaflow_engine.runtime.failures.failures import to_error
from kaflow_engine.runtime.jobs.warm_up import warm_up
from kaflow_engine.runtime.pipeline import PipelineRun
from kaflow_engine.runtime.planning.columns import connection_of_source
from kaflow_engine.runtime.sink.bookkeeping import forget_runs
from kaflow_engine.runtime.spark.cluster import require_master, warn_unless_protected
from kaflow_engine.runtime.spark.jars import spark_kafka_jars
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.master import cores, is_local
from kaflow_engine.runtime.spark.session import start_ahead, start_session
from kaflow_engine.runtime.spark.sessions import Sessions
from kaflow_engine.runtime.takeover.open_state import PlanChange, refuse_change
from kaflow_engine.runtime.tasks.memory import release_now_and_then
from kaflow_engine.state.storage.lease import Leases, hold_lease
from kaflow_engine.telemetry.progress import PipelineSummary, Progress, RunSummary

_POLL_S = 0.1
_GRACE_S = 10.0
_LIGHT = {"Tiered": "-XX:TieredStopAtLevel=1", "GC": "-XX:+UseSerialGC", "-Xms": "-Xms64m"}
"""Options of Java where no record passes it, by what stands in others of their kind: it only
schedules, which never earns back what its better compiler takes, and makes little garbage."""


def run_pipelines(
    plans: Sequence[Flow],
    config: Config,
    *,
    until_caught_up: bool = False,
    max_records: int | None = None,
    on_progress: OnProgress = lambda progress: None,
    stop: threading.Event | None = None,
    change: PlanChange = refuse_change,
    leases: Leases | None = None,
    spark: SparkSession | None = None,
) -> RunSummary:
    """Run pipelines until each has ended.

    A pipeline that fails does not stop the others; its error is raised when they have ended. Where
    Spark ends, the pipelines go on with a new session.

    Args:
        plans: What to run.
        config: The same for all of them.
        until_caught_up: End each at the ends that its topics have now.
        max_records: End each after about so many records.
        on_progress: Called with every change, by the threads of the pipelines.
        stop: Set it to drain: each finishes its batch and ends.
        change: Asked when a state was made for another plan.
        leases: Of the states of all of them, given back as they end; None: they are taken here.
        spark: A session to use; otherwise one is started and stopped again.

    Raises:
        StateHeld: Another process runs one of them; nothing was started.
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
    root = Path(config.state.rocksdb.path).absolute()
    with leases or Leases(root, [plan.pipeline for plan in plans]).take() as held:
        require_master(config.spark.master)
        sessions = Sessions(
            partial(_start, spark_settings(config, plans)) if spark is None else lambda: spark
        )
        with ExitStack() as resources:
            if spark is None:
                resources.callback(sessions.close)
            taking = {plan.pipeline: resources.enter_context(ExitStack()) for plan in plans}
            patience = config.retry_deadline / 1000
            reached = partial(connection_of_source, config)
            received = {
                plan.pipeline: taking[plan.pipeline].enter_context(
                    receiving(plan, root, config.secrets, patience, reached)
                )
                for plan in plans
            }
            warn_unless_protected(sessions.get(), config.spark.master)
            runs = [
                PipelineRun(
                    spark=sessions.get(),
                    newest=sessions.get,
                    pipelines=len(plans),
                    plan=plan,
                    config=config,
                    limits=limits,
                    watch=Watch(plan.name, on_progress, received=received[plan.pipeline]),
                    change=change,
                )
                for plan in plans
            ]
            return _supervise(runs, held, taking, limits, config.drain_deadline / 1000)


def start_java(config: Config) -> None:
    """Launch the JVM of the `run_pipelines` that follows, while whoever calls prepares for it.

    It is of use where no topic begins in files, which is known later: that needs another JVM.
    """
    start_ahead(spark_settings(config, ()), find_java, spark_kafka_jars)


def spark_settings(config: Config, plans: Sequence[Flow]) -> SparkConfig:
    """Return Spark's settings, with what its JVMs need for what is read through them."""
    needed = [java_options([each.properties for each in config.kafka.every.values()])]
    through_jvm = library() is None or any(t.history for plan in plans for t in plan.sources)
    conf = dict(config.spark.conf)
    for name in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        own = conf.get(name, "")
        light = () if through_jvm else (each for known, each in _LIGHT.items() if known not in own)
        if found := " ".join(filter(None, [own, *needed, *light])):
            conf[name] = found
    return config.spark.model_copy(update={"conf": conf})


def _start(settings: SparkConfig) -> SparkSession:
    session = start_session(settings, find_java(), spark_kafka_jars())
    if is_local(settings.master):
        warm_up(session, cores(settings.master))
    return session


def run_backfill(
    plan: Flow,
    config: Config,
    wanted: Backfill,
    *,
    restart: bool = False,
    on_progress: OnProgress = lambda progress: None,
    stop: threading.Event | None = None,
    spark: SparkSession | None = None,
) -> RunSummary:
    """Run a pipeline over a range of event time, beside its stream.

    It has a state of its own, which goes when the backfill is done. One that was interrupted goes
    on where it was.

    Args:
        plan: Of the pipeline.
        config: As for a stream.
        wanted: The range.
        restart: Begin again, whatever an earlier try has done.
        on_progress: Called with every change.
        stop: Set it to end after the batch that runs.
        spark: A session to use; otherwise one is started and stopped again.

    Raises:
        StateError: Another backfill of the pipeline runs, this one began with another plan, or the
            pipeline has sessions, or GROUP BY without a window that closes.
        KaflowError: What else ended it.
    """
    refuse_groups(plan)
    root = Path(config.state.rocksdb.path).absolute()
    own = backfill_plan(plan, wanted)
    with hold_lease(root / f"{plan.pipeline}.backfills"):
        if restart:
            _forget(own, config, root)
        summary = run_pipelines(
            [own],
            config,
            on_progress=on_progress,
            stop=stop,
            change=_refuse_other_plan,
            spark=spark,
        )
        if summary.pipelines[plan.name].ending == "caught up":
            _forget(own, config, root)
    return summary


def _forget(plan: Flow, config: Config, root: Path) -> None:
    """Remove what a backfill kept for itself."""
    forget_runs(config, plan)
    shutil.rmtree(root / plan.pipeline, ignore_errors=True)


def _refuse_other_plan(old: Flow, new: Flow) -> None:
    assert old.backfill is not None
    assert new.backfill is not None
    forced = replace(old.backfill, force=new.backfill.force)  # is decided at each start
    if replace(old, backfill=forced) == new:
        return
    raise StateError(
        f"this backfill of pipeline '{new.name}' was begun with another version of it",
        hint="add --restart to begin it again",
    )


@dataclass(slots=True)
class _Outcomes:
    summaries: dict[str, PipelineSummary] = field(default_factory=dict[str, PipelineSummary])
    errors: list[KaflowError] = field(default_factory=list[KaflowError])


def _supervise(
    runs: Sequence[PipelineRun],
    leases: Leases,
    taking: Mapping[str, ExitStack],
    limits: Limits,
    deadline: float,
) -> RunSummary:
    outcomes = _Outcomes()
    threads = [
        threading.Thread(
            target=_run,
            args=(run, outcomes, leases, taking[run.plan.pipeline]),
            name=f"kaflow-{run.plan.name}",
            daemon=True,
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
                limits.overdue.set()
                alive = ", ".join(f"'{r.plan.name}'" for r in runs if _alive(r, threads))
                raise DrainIncomplete(
                    f"{alive} did not stop within {deadline:g} s",
                    hint="the open batch runs again at the next start; "
                    "raise 'drain_deadline' to wait longer",
                )
    if outcomes.errors:
        raise outcomes.errors[0]
    return RunSummary(pipelines=outcomes.summaries)


def _run(run: PipelineRun, outcomes: _Outcomes, leases: Leases, receivers: ExitStack) -> None:
    try:
        outcomes.summaries[run.plan.name] = run.run()
    except Exception as error:
        failure = to_error(error, f"running pipeline '{run.plan.name}'")
        outcomes.errors.append(failure)
        if isinstance(failure, DrainIncomplete):
            return  # its batch may still run, so the process keeps the lease
    try:
        receivers.close()  # whoever gets the lease next writes the journals
    except Exception as error:
        outcomes.errors.append(to_error(error, f"closing the sources of '{run.plan.name}'"))
    leases.release(run.plan.pipeline)


def _alive(run: PipelineRun, threads: Sequence[threading.Thread]) -> bool:
    return any(t.is_alive() and t.name == f"kaflow-{run.plan.name}" for t in threads)
