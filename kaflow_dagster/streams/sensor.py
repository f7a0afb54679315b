"""The switch of a pipeline: while its sensor is on, the pipeline is kept running."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import dagster as dg

from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.units import StreamUnit
from kaflow_dagster.assets.views import ProjectView
from kaflow_dagster.runs.begun import BEGUN
from kaflow_dagster.runs.names import DRAIN, PIPELINE, PROCESS, STATE, VERSION, dagster_name
from kaflow_dagster.streams.process import Process
from kaflow_dagster.streams.supervision import (
    Decision,
    DesiredState,
    Session,
    SessionStatus,
    SupervisionLimits,
    decide,
)
from kaflow_engine.api.errors import KaflowError, without_secrets
from kaflow_engine.api.plan import Resolver
from kaflow_engine.api.project import with_brought
from kaflow_engine.api.state import outlook_of

SWITCH = "kaflow/switch"
"""On assets of streams: the sensor, the tag of its runs, and the pipelines in them."""

_PATIENCE = 5_000
"""Milliseconds that a topic's first record is waited for."""

_STATUS: dict[dg.DagsterRunStatus, SessionStatus] = {
    dg.DagsterRunStatus.STARTED: "running",
    dg.DagsterRunStatus.CANCELING: "running",
    dg.DagsterRunStatus.SUCCESS: "done",
    dg.DagsterRunStatus.FAILURE: "failed",
    dg.DagsterRunStatus.CANCELED: "cancelled",
}
"""What a run that is not listed does: it waits for something."""


def build_supervisor(
    unit: StreamUnit,
    project: ProjectView,
    job: dg.JobDefinition | None,
    limits: SupervisionLimits | None = None,
) -> dg.SensorDefinition:
    """Return the sensor of a pipeline or a group.

    Args:
        unit: Which one.
        project: Where it is read again.
        job: Its stream; None where the pipeline is broken.
        limits: When to act.
    """
    limits = limits or SupervisionLimits()

    @dg.sensor(
        name=dagster_name("supervise", unit.name),
        job=job,
        minimum_interval_seconds=5,
        description=f"Keeps {unit.about} running while it is on.",
    )
    def supervise(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if unit.problem is not None:
            return dg.SkipReason(f"broken: {unit.problem}")
        other = _under_another_name(context.instance, unit)
        if other is not None:
            return _carry_out(context.instance, other)
        sessions = sessions_of(context.instance, unit.name, limits.attempts + 2)
        desired = DesiredState(
            pipeline=unit.name,
            version=unit.version,
            since=context.last_sensor_start_time or 0.0,
        )
        if not any(each.live and each.version == desired.version for each in sessions):
            desired = replace(desired, unfit=_unfit(unit, project))
        decision = decide(sessions, desired, time.time(), limits)
        return _carry_out(context.instance, decision)

    return supervise


def with_switches(
    specs: Sequence[dg.AssetSpec], units: Sequence[StreamUnit], translator: KaflowTranslator
) -> list[dg.AssetSpec]:
    """Add to the assets of streams which sensor is their switch, and for whom else it is."""
    switches = {
        translator.stream_key(pipeline): {
            "sensor": dagster_name("supervise", unit.name),
            "run": unit.name,
            "pipelines": [each.name for each in unit.pipelines],
        }
        for unit in units
        for pipeline in unit.pipelines
    }
    return [
        spec.merge_attributes(metadata={SWITCH: dg.MetadataValue.json(switches[spec.key])})
        if spec.key in switches
        else spec
        for spec in specs
    ]


def sessions_of(instance: dg.DagsterInstance, pipeline: str, most: int) -> list[Session]:
    """Return the last sessions of a pipeline or a group, newest first."""
    found = instance.get_run_records(dg.RunsFilter(tags={PIPELINE: pipeline}), limit=most)
    return [_session(instance, record) for record in found]


def _under_another_name(instance: dg.DagsterInstance, unit: StreamUnit) -> Decision | None:
    """Drain the run of a pipeline that was renamed: no one supervises the old name any more."""
    if unit.state is None:
        return None
    live = dg.RunsFilter(tags={STATE: unit.state}, statuses=BEGUN)
    for run in instance.get_runs(live):
        name = run.tags.get(PIPELINE)
        if name == unit.name:
            continue
        if DRAIN in run.tags:
            return Decision(action="ok", reason=f"run {run.run_id} of '{name}' finishes its batch")
        reason = f"pipeline '{name}' is called '{unit.name}' now"
        return Decision(action="drain", reason=reason, run_id=run.run_id)
    return None


def _session(instance: dg.DagsterInstance, record: dg.RunRecord) -> Session:
    run = record.dagster_run
    status = _STATUS.get(run.status, "waiting")
    events: Sequence[dg.EventLogRecord] = ()
    if status == "running":
        events = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
    return Session(
        run_id=run.run_id,
        status=status,
        version=run.tags.get(VERSION, ""),
        began=record.start_time or 0.0,
        heard=events[0].timestamp if events else 0.0,
        ended=record.end_time or 0.0,
        draining=DRAIN in run.tags or run.status == dg.DagsterRunStatus.CANCELING,
    )


def _unfit(unit: StreamUnit, project: ProjectView) -> str | None:
    """Return why the pipelines could not start with their state as it is, and the way out."""
    try:
        config = project.load_config()
        for pipeline in unit.pipelines:
            spec = project.load(pipeline.name, config)
            own = with_brought(config, [spec])
            verdict = outlook_of(spec, own, stopped=True).verdict
            if verdict.status == "unclear":  # a state that is there wants columns it does not hold
                verdict = outlook_of(spec, own, _resolver(), stopped=True).verdict
            if verdict.decided:
                continue
            reasons = without_secrets("\n".join(verdict.reasons))
            if verdict.status != "rebuild":
                return f"{pipeline.name}: {reasons}"
            files = " ".join(shlex.quote(path) for path in project.paths)
            settings = f" --config {shlex.quote(project.config)}" if project.config else ""
            return (
                f"{pipeline.name} needs a rebuild: {reasons}; "
                f"kaflow plan {files}{settings} --approve {pipeline.name}"
            )
    except KaflowError as error:
        return str(error)
    return None


def _resolver() -> Resolver:
    """Return what asks the brokers, where a tick has no other way."""
    from kaflow_engine.api.run import resolve_columns

    return partial(resolve_columns, wait_ms=_PATIENCE)


def _carry_out(instance: dg.DagsterInstance, decision: Decision) -> dg.RunRequest | dg.SkipReason:
    if decision.action == "launch":
        return dg.RunRequest(run_key=decision.run_key)
    if decision.run_id is not None and decision.action == "drain":
        instance.add_run_tags(decision.run_id, {DRAIN: decision.reason})
    elif decision.run_id is not None and decision.action == "reap":
        _reap(instance, decision.run_id, decision.reason)
    return dg.SkipReason(f"{decision.action}: {decision.reason}")


def _reap(instance: dg.DagsterInstance, run_id: str, reason: str) -> None:
    """Kill the process of a run, and only then say that the run has failed."""
    run = instance.get_run_by_id(run_id)
    if run is None:
        return
    process = Process.parse(run.tags.get(PROCESS, ""))
    if process is None or process.kill():
        instance.report_run_failed(run, f"{reason}; its process was killed")
