"""A session: one Dagster run in which a pipeline streams until somebody wants it to stop."""
# pyright: reportUnknownMemberType=false
# Dagster's decorators are typed in part

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from kaflow_dagster.names import DRAIN, PIPELINE, PROCESS, VERSION, dagster_name
from kaflow_dagster.process import this_process
from kaflow_dagster.translator import KaflowTranslator
from kaflow_dagster.views import PipelineView
from kaflow_engine.errors import KaflowError
from kaflow_engine.model.config import Config
from kaflow_engine.model.load_config import load_config
from kaflow_engine.plan.project import load_checked
from kaflow_engine.runtime.progress import Progress

REPORT_S = 30.0
"""Seconds between events: each takes some kilobytes for ever."""
_POLL_S = 0.5
_GRACE_S = 15.0


def build_stream_job(
    pipeline: PipelineView, config: str | None, translator: KaflowTranslator
) -> dg.JobDefinition:
    """Return the job whose runs are the sessions of a pipeline.

    Args:
        pipeline: Which one.
        config: Path of the configuration file.
        translator: Names the asset that gets the reports.
    """
    key = translator.stream_key(pipeline)

    @dg.op(name=dagster_name("run", pipeline.name), out=dg.Out(dg.Nothing))
    def stream(context: dg.OpExecutionContext) -> Iterator[object]:
        yield from _session(context, pipeline, config, key)

    @dg.job(
        name=dagster_name("stream", pipeline.name),
        description=f"Streams pipeline `{pipeline.name}`; its sensor keeps it running.",
        # A step in a process of its own would go on when the process of the run is killed.
        executor_def=dg.in_process_executor,
        tags={PIPELINE: pipeline.name, VERSION: pipeline.version, "dagster/max_retries": "0"},
    )
    def job() -> None:
        stream()

    return job


@dataclass(slots=True)
class _Work:
    """What the thread that streams shares with the one that reports."""

    stop: threading.Event = field(default_factory=threading.Event)
    newest: Progress | None = None
    says: str = "starting"
    error: BaseException | None = None

    def progress(self, progress: Progress) -> None:
        self.newest = progress

    def say(self, text: str) -> None:
        self.says = text


def _session(
    context: dg.OpExecutionContext,
    pipeline: PipelineView,
    config_path: str | None,
    key: dg.AssetKey,
) -> Iterator[object]:
    try:
        config = load_config(None if config_path is None else Path(config_path))
    except KaflowError as error:
        raise _failure(error) from error
    context.instance.add_run_tags(context.run_id, {PROCESS: str(this_process())})
    work = _Work()
    # Not the main thread: there Spark would take the signals by which Dagster ends a run.
    thread = threading.Thread(
        target=_stream, args=(work, Path(pipeline.file), config), name="kaflow-stream", daemon=True
    )
    thread.start()
    try:
        yield from _reports(context, work, thread, key)
    finally:
        work.stop.set()
        thread.join(config.drain_deadline / 1000 + _GRACE_S)
    if work.error is not None:
        raise _failure(work.error) from work.error
    yield dg.Output(None)


def _stream(work: _Work, file: Path, config: Config) -> None:
    try:
        from kaflow_engine.plan.diff import change
        from kaflow_engine.runtime.application import run_pipelines
        from kaflow_engine.runtime.prepare import Waiting, prepare

        project = load_checked([file], config)
        waiting = Waiting(stopped=work.stop.is_set)
        plans = prepare(project.pipelines, config, work.say, waiting)
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
    context: dg.OpExecutionContext, work: _Work, thread: threading.Thread, key: dg.AssetKey
) -> Iterator[object]:
    """Report every now and then, and as soon as the state changes, until the work has ended."""
    told, state = time.monotonic(), None
    while thread.is_alive():
        thread.join(_POLL_S)
        progress = work.newest
        now_is = progress.state if progress else None
        if time.monotonic() - told < REPORT_S and now_is == state:
            continue
        told, state = time.monotonic(), now_is
        if progress is None or progress.batch == 0:
            context.log.info(f"no batch yet: {now_is or work.says}")
        else:
            yield dg.AssetMaterialization(asset_key=key, metadata=report(progress))
        reason = drain_reason(context)
        if reason is not None and not work.stop.is_set():
            context.log.info(f"finishes its batch and ends: {reason}")
            work.stop.set()
    if work.newest is not None and work.newest.batch:
        yield dg.AssetMaterialization(asset_key=key, metadata=report(work.newest))


def drain_reason(context: dg.OpExecutionContext) -> str | None:
    """Return why this run should end, if somebody wants that."""
    run = context.instance.get_run_by_id(context.run_id)
    return run.tags.get(DRAIN) if run else None


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
