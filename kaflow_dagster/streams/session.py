"""A session: one Dagster run in which pipelines stream until someone wants them to stop."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event

import dagster as dg

from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.units import StreamUnit
from kaflow_dagster.assets.views import ProjectView
from kaflow_dagster.runs.background import Background, failure
from kaflow_dagster.runs.names import DRAIN, PIPELINE, PROCESS, STATE, VERSION, dagster_name
from kaflow_dagster.streams.outputs import NEWEST, OutputReports, Running
from kaflow_dagster.streams.process import this_process
from kaflow_dagster.streams.reports import PipelineAssets, Reports, assets_of
from kaflow_engine.api.errors import KaflowError
from kaflow_engine.api.project import Config, with_brought
from kaflow_engine.api.status import Progress, open_outlet

REPORT_S = 60.0
"""Seconds between reports; `docs/dagster.md` says how many events that is."""
_POLL_S = 0.5
_LOOK_S = 3.0


def build_stream_job(
    unit: StreamUnit, project: ProjectView, translator: KaflowTranslator, newest: int = NEWEST
) -> dg.JobDefinition:
    """Return the job whose runs are the sessions of a pipeline, or of a group.

    Args:
        unit: Which one.
        project: Where it is read again.
        translator: Names the assets that get the reports.
        newest: Rows of each output that a report shows.
    """
    assets = {each.name: assets_of(each, translator) for each in unit.pipelines}

    @dg.op(name=dagster_name("run", unit.name), out=dg.Out(dg.Nothing))
    def stream(context: dg.OpExecutionContext) -> Iterator[object]:
        yield from session_of(context, project, assets, newest)

    @dg.job(
        name=dagster_name("stream", unit.name),
        description=f"Streams {unit.about}; its sensor keeps it running.",
        # A step in a process of its own would go on when the process of the run is killed.
        executor_def=dg.in_process_executor,
        tags={
            PIPELINE: unit.name,
            VERSION: unit.version,
            "dagster/max_retries": "0",
            **({STATE: unit.state} if unit.state else {}),
        },
    )
    def job() -> None:
        stream()

    return job


@dataclass(slots=True)
class _Heard:
    """What the thread that streams tells the one that reports."""

    newest: dict[str, Progress] = field(default_factory=dict[str, Progress])
    running: dict[str, Running] = field(default_factory=dict[str, Running])
    says: str = "starting"
    address: str | None = None
    """Where health, status and metrics are read."""

    def say(self, text: str) -> None:
        self.says = text


def session_of(
    context: dg.OpExecutionContext,
    project: ProjectView,
    assets: Mapping[str, PipelineAssets],
    newest: int,
) -> Iterator[object]:
    """Stream pipelines until they end or someone wants them to, and yield what they report.

    Args:
        context: Of the run.
        project: Where the pipelines are read again.
        assets: By pipeline, what reports are about.
        newest: Rows of each output that a report shows.
    """
    try:
        config = project.load_config()
    except KaflowError as error:
        raise failure(error) from None
    instance = context.instance
    instance.add_run_tags(context.run_id, {PROCESS: str(this_process())})
    heard = _Heard()
    outputs = OutputReports(instance, context.run_id, newest)
    reports = {name: Reports(instance, each, outputs) for name, each in assets.items()}
    with Background(
        partial(_stream, heard, project, list(assets), config), config.drain_deadline
    ) as work:
        yield from _reports(context, work, heard, reports)
    if work.error is not None:
        raise failure(work.error) from None
    yield dg.Output(None)


def _stream(
    heard: _Heard, project: ProjectView, names: Sequence[str], config: Config, stop: Event
) -> None:
    from kaflow_engine.api.run import (
        RunningPreviews,
        Waiting,
        accept_change,
        prepare,
        run_pipelines,
        start_java,
    )

    specs = [project.load(name, config) for name in names]
    config = with_brought(config, specs)
    files = {spec.name: spec.file_metrics for spec in specs}
    with open_outlet(config, names, RunningPreviews(specs, config), files) as outlet:
        heard.address = outlet.address

        def progressed(progress: Progress) -> None:
            outlet.take(progress)
            heard.newest[progress.pipeline] = progress
            if progress.state == "failed":
                stop.set()  # a session is whole or none: the next one starts all of it again

        waiting = Waiting(stopped=stop.is_set, endless=True)
        plans = prepare(specs, config, heard.say, waiting, start_java)
        heard.running.update({each.spec.name: Running(each.plan, config) for each in plans})
        if not stop.is_set():
            run_pipelines(
                [planned.plan for planned in plans],
                config,
                stop=stop,
                on_progress=progressed,
                change=accept_change,
            )


def _reports(
    context: dg.OpExecutionContext, work: Background, heard: _Heard, reports: Mapping[str, Reports]
) -> Iterator[object]:
    """Report every now and then, after the first batch, and as soon as a state changes."""
    reported: dict[str, tuple[float, tuple[str, bool]]] = {}
    looked = time.monotonic()
    while work.runs_after(_POLL_S):
        if time.monotonic() - looked > _LOOK_S and not work.stop.is_set():
            looked = time.monotonic()
            _drain(context, work)
        for name, each in reports.items():
            progress = heard.newest.get(name)
            state = progress.state if progress else heard.says
            began = progress is not None and progress.batch > 0
            at, before = reported.get(name, (0.0, ("", False)))
            if time.monotonic() - at < REPORT_S and before == (state, began):
                continue
            reported[name] = time.monotonic(), (state, began)
            if progress is None or not began:
                context.log.info(f"{name}: no batch yet: {state}")
            else:
                yield from each.of(progress, heard.running.get(name), heard.address)
                yield from each.closed(progress)
    for name, progress in heard.newest.items():
        if progress.batch:
            yield from reports[name].of(progress, heard.running.get(name))


def _drain(context: dg.OpExecutionContext, work: Background) -> None:
    """Stop the work if someone wants this run to end."""
    run = context.instance.get_run_by_id(context.run_id)
    reason = run.tags.get(DRAIN) if run else None
    if reason is not None:
        context.log.info(f"finishes its batch and ends: {reason}")
        work.stop.set()
