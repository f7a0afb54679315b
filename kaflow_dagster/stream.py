"""A session: one Dagster run in which pipelines stream until somebody wants them to stop."""
# pyright: reportUnknownMemberType=false
# Dagster's decorators are typed in part

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from kaflow_dagster.names import DRAIN, PIPELINE, PROCESS, VERSION, dagster_name
from kaflow_dagster.process import this_process
from kaflow_dagster.translator import KaflowTranslator
from kaflow_dagster.views import ProjectView, StreamUnit
from kaflow_engine.errors import KaflowError
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.progress import Progress

REPORT_S = 30.0
"""Seconds between events: each takes some kilobytes for ever."""
_POLL_S = 0.5
_LOOK_S = 3.0
_GRACE_S = 15.0


def build_stream_job(
    unit: StreamUnit, project: ProjectView, translator: KaflowTranslator
) -> dg.JobDefinition:
    """Return the job whose runs are the sessions of a pipeline, or of a group.

    Args:
        unit: Which one.
        project: Where it is read anew.
        translator: Names the assets that get the reports.
    """
    keys = {pipeline.name: translator.stream_key(pipeline) for pipeline in unit.pipelines}

    @dg.op(name=dagster_name("run", unit.name), out=dg.Out(dg.Nothing))
    def stream(context: dg.OpExecutionContext) -> Iterator[object]:
        yield from _session(context, project, keys)

    @dg.job(
        name=dagster_name("stream", unit.name),
        description=f"Streams {unit.about}; its sensor keeps it running.",
        # A step in a process of its own would go on when the process of the run is killed.
        executor_def=dg.in_process_executor,
        tags={PIPELINE: unit.name, VERSION: unit.version, "dagster/max_retries": "0"},
    )
    def job() -> None:
        stream()

    return job


@dataclass(slots=True)
class _Work:
    """What the thread that streams shares with the one that reports."""

    stop: threading.Event = field(default_factory=threading.Event)
    newest: dict[str, Progress] = field(default_factory=dict[str, Progress])
    says: str = "starting"
    error: BaseException | None = None

    def progress(self, progress: Progress) -> None:
        self.newest[progress.pipeline] = progress
        if progress.state == "failed":
            self.stop.set()  # a session is whole or none: the next one starts all of it again

    def say(self, text: str) -> None:
        self.says = text


def _session(
    context: dg.OpExecutionContext, project: ProjectView, keys: Mapping[str, dg.AssetKey]
) -> Iterator[object]:
    try:
        config = project.load_config()
    except KaflowError as error:
        raise _failure(error) from error
    context.instance.add_run_tags(context.run_id, {PROCESS: str(this_process())})
    work = _Work()
    # Not the main thread: there Spark would take the signals by which Dagster ends a run.
    thread = threading.Thread(
        target=_stream, args=(work, project, list(keys), config), name="kaflow-stream", daemon=True
    )
    thread.start()
    try:
        yield from _reports(context, work, thread, keys)
    finally:
        work.stop.set()
        thread.join(config.drain_deadline / 1000 + _GRACE_S)
    if work.error is not None:
        raise _failure(work.error) from work.error
    yield dg.Output(None)


def _stream(work: _Work, project: ProjectView, names: Sequence[str], config: Config) -> None:
    try:
        from kaflow_engine.plan.diff import change
        from kaflow_engine.runtime.application import run_pipelines
        from kaflow_engine.runtime.prepare import Waiting, prepare

        waiting = Waiting(stopped=work.stop.is_set)
        specs = [project.load(name, config) for name in names]
        plans = prepare(specs, config, work.say, waiting)
        if not work.stop.is_set():
            run_pipelines(
                [planned.plan for planned in plans],
                config,
                stop=work.stop,
                on_progress=work.progress,
                change=change,
            )
    except BaseException as error:  # the thread that reports raises it
        work.error = error


def _reports(
    context: dg.OpExecutionContext,
    work: _Work,
    thread: threading.Thread,
    keys: Mapping[str, dg.AssetKey],
) -> Iterator[object]:
    """Report every now and then, and as soon as a state changes, until the work has ended."""
    told: dict[str, tuple[float, str]] = {}
    looked = time.monotonic()
    while thread.is_alive():
        thread.join(_POLL_S)
        if time.monotonic() - looked > _LOOK_S and not work.stop.is_set():
            looked = time.monotonic()
            _drain(context, work)
        for name, key in keys.items():
            progress = work.newest.get(name)
            state = progress.state if progress else work.says
            at, before = told.get(name, (0.0, ""))
            if time.monotonic() - at < REPORT_S and state == before:
                continue
            told[name] = time.monotonic(), state
            if progress is None or progress.batch == 0:
                context.log.info(f"{name}: no batch yet: {state}")
            else:
                yield dg.AssetMaterialization(asset_key=key, metadata=report(progress))
    for name, progress in work.newest.items():
        if progress.batch:
            yield dg.AssetMaterialization(asset_key=keys[name], metadata=report(progress))


def _drain(context: dg.OpExecutionContext, work: _Work) -> None:
    """Stop the work if somebody wants this run to end."""
    run = context.instance.get_run_by_id(context.run_id)
    reason = run.tags.get(DRAIN) if run else None
    if reason is not None:
        context.log.info(f"finishes its batch and ends: {reason}")
        work.stop.set()


def report(progress: Progress) -> Mapping[str, dg.MetadataValue]:
    """Return what is shown, and plotted, of a stream."""
    numbers: dict[str, dg.MetadataValue] = {
        "kaflow/state": dg.MetadataValue.text(progress.state),
        "kaflow/batch": dg.MetadataValue.int(progress.batch),
        "kaflow/batch_ms": dg.MetadataValue.float(round(progress.batch_ms, 1)),
        "kaflow/records_per_second": dg.MetadataValue.float(round(progress.records_per_second, 1)),
        "kaflow/lag": dg.MetadataValue.int(sum(progress.lag.values())),
        "kaflow/waiting": dg.MetadataValue.int(progress.waiting),
        "kaflow/dead_letters": dg.MetadataValue.int(progress.dead_letters),
        "kaflow/emitted": dg.MetadataValue.int(progress.counters.get("emitted", 0)),
        "kaflow/failures": dg.MetadataValue.int(progress.failures),
    }
    if progress.watermark is not None:
        numbers["kaflow/watermark"] = dg.MetadataValue.timestamp(progress.watermark / 1000)
    if progress.last_error is not None:
        numbers["kaflow/last_error"] = dg.MetadataValue.text(progress.last_error)
    return numbers


def _failure(error: BaseException) -> dg.Failure:
    metadata = {"kind": dg.MetadataValue.text(type(error).__name__)}
    return dg.Failure(description=str(error), metadata=metadata, allow_retries=False)
