"""Runs pipelines in the foreground: progress while they run, and a summary at the end."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import assert_never

import click

from kaflow_engine.cli.live_view.board import Board
from kaflow_engine.cli.live_view.latest_rows import follow_rows
from kaflow_engine.cli.live_view.logs import log_messages
from kaflow_engine.cli.live_view.views import View, choose_view
from kaflow_engine.cli.output import print_json
from kaflow_engine.cli.run.standby import take_states
from kaflow_engine.cli.run.summary import error_data, summary_data, summary_lines
from kaflow_engine.connectors.kafka.client import open_admin
from kaflow_engine.connectors.kafka.clusters.input_topics import clusters_of
from kaflow_engine.errors import Location, ModelError, SourceError
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.preview.served import RunningPreviews
from kaflow_engine.runtime.planning.needs import needs_of
from kaflow_engine.runtime.planning.prepare import Waiting, prepare
from kaflow_engine.state.storage.lease import Leases, require_writable
from kaflow_engine.telemetry.outlet import Outlet, open_outlet
from kaflow_engine.telemetry.progress import PipelineSummary, Progress, RunSummary

_REFRESH_S = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How to run, and how to show it."""

    until_caught_up: bool = False
    max_records: int | None = None
    plain: bool = False
    as_json: bool = False
    backfill: Backfill | None = None
    """Run the one pipeline over this range instead of following its topics."""
    restart: bool = False
    """Begin that backfill again."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """Pipelines that can run."""

    plans: Sequence[PlannedPipeline]
    leases: Leases | None
    """Of their states; None: of a backfill, which takes its own."""


@dataclass(slots=True)
class _Outcome:
    endings: dict[str, PipelineSummary] = field(default_factory=dict[str, PipelineSummary])
    error: BaseException | None = None


def run_in_front(
    specs: Sequence[PipelineSpec],
    config: Config,
    manner: Manner,
    asked: Event,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Run pipelines, show how it goes, and print a summary.

    Args:
        specs: What to run.
        config: The same for all.
        manner: How.
        asked: Set when someone wants the pipelines to stop: they finish their batch.
        on_progress: Called with every change.

    Raises:
        KaflowError: What ended the first pipeline that failed; the summary is printed all the same.
    """
    # Before anything is waited for.
    require_writable(Path(config.state.rocksdb.path))
    _try_settings(config)
    with log_messages(config.logging), _outlet(specs, config, manner) as outlet:

        def progressed(progress: Progress) -> None:
            outlet.take(progress)
            on_progress(progress)

        if outlet.address is not None:
            _say(f"health, status and metrics at {outlet.address}")
        begun = _begin(specs, config, manner, asked, progressed)
        if begun is None:
            _say("stopped before anything ran")
            return
        board = Board(names=[planned.plan.name for planned in begun.plans])
        outcome = _run(begun, config, manner, asked, board, progressed)
    newest = [board.newest.get(name, Progress(pipeline=name)) for name in board.names]
    if manner.as_json:
        failed = {} if outcome.error is None else {"error": error_data(outcome.error)}
        print_json(summary_data(newest, outcome.endings) | failed)
    else:
        click.echo("\n".join(["", *summary_lines(newest, outcome.endings)]))
    if outcome.error is not None:
        _say_others(newest, outcome.error)
        raise outcome.error


def _outlet(
    specs: Sequence[PipelineSpec], config: Config, manner: Manner
) -> AbstractContextManager[Outlet]:
    """A backfill tells no one: it runs beside the stream, which has the port."""
    if manner.backfill is not None:
        return nullcontext(Outlet(None, lambda progress: None))
    files = {spec.name: spec.file_metrics for spec in specs}
    return open_outlet(config, list(files), RunningPreviews(specs, config), files)


def _begin(
    specs: Sequence[PipelineSpec],
    config: Config,
    manner: Manner,
    asked: Event,
    on_progress: Callable[[Progress], None],
) -> _Begun | None:
    """Take the states, and then plan; None: someone wants the pipelines to stop before."""
    with ExitStack() as leaving:
        leases = None
        endless = not manner.until_caught_up and manner.max_records is None
        if manner.backfill is None:  # it has a state of its own, and takes that itself
            leases = take_states(specs, config, asked, on_progress, waits=endless)
            if leases is None:
                return None
            leaving.enter_context(leases)
        _say(f"preparing {_count(len(specs))}{_brokers(specs, config)}")
        try:
            waiting = Waiting(stopped=asked.is_set, endless=endless)
            plans = prepare(specs, config, _say, waiting, _start_java)
        except SourceError:
            if asked.is_set():
                return None
            raise
        for planned in plans:
            _say(f"  {_arrow(planned)}")
        if asked.is_set():
            return None
        leaving.pop_all()  # who runs them gives them back
        return _Begun(plans, leases)


def _run(
    begun: _Begun,
    config: Config,
    manner: Manner,
    asked: Event,
    board: Board,
    on_progress: Callable[[Progress], None],
) -> _Outcome:
    outcome = _Outcome()

    def progressed(progress: Progress) -> None:
        board.progress(progress)
        on_progress(progress)

    def work() -> None:
        try:
            outcome.endings.update(_spark(begun, config, manner, asked, progressed).pipelines)
        except BaseException as error:  # the main thread raises it
            outcome.error = error

    # Not the main thread: there Spark would replace our handler of Ctrl-C by its own.
    worker = Thread(target=work, name="kaflow-run", daemon=True)
    _say(f"starting Spark ({config.spark.master})")
    view = choose_view(manner.plain or manner.as_json)
    with view, follow_rows(begun.plans, config, board.show_rows):
        worker.start()
        _watch(worker, view, board, asked, config.drain_deadline)
    return outcome


def _watch(worker: Thread, view: View, board: Board, asked: Event, deadline: int) -> None:
    announced = False
    while worker.is_alive():
        worker.join(_REFRESH_S)
        if asked.is_set() and not announced:
            announced = True
            view.say(f"stopping: batches that run are finished, at most {deadline / 1000:g} s")
        view.refresh(board)
    time.sleep(_REFRESH_S)  # the last rows become visible
    view.refresh(board)


def _spark(
    begun: _Begun,
    config: Config,
    manner: Manner,
    asked: Event,
    on_progress: Callable[[Progress], None],
) -> RunSummary:
    from kaflow_engine.runtime.application import run_backfill, run_pipelines  # imports Spark

    if manner.backfill is not None:
        return run_backfill(
            begun.plans[0].plan,
            config,
            manner.backfill,
            restart=manner.restart,
            on_progress=on_progress,
            stop=asked,
        )
    return run_pipelines(
        [planned.plan for planned in begun.plans],
        config,
        leases=begun.leases,
        until_caught_up=manner.until_caught_up,
        max_records=manner.max_records,
        on_progress=on_progress,
        stop=asked,
        change=change,
    )


def _start_java(config: Config) -> None:
    from kaflow_engine.runtime.application import start_java  # imports Spark

    start_java(config)


def _say_others(newest: Sequence[Progress], raised: BaseException) -> None:
    """Print the errors of pipelines that failed beside the one whose error ends the command."""
    shown = str(raised)
    for at in newest:
        if at.state == "failed" and at.last_error and at.last_error != shown:
            click.echo(f"error: pipeline '{at.pipeline}': {at.last_error}", err=True)


def _try_settings(config: Config) -> None:
    """Let the Kafka client look at its settings, and say where those stand that it refuses."""
    for cluster, settings in clusters_of(config.kafka).items():
        try:
            open_admin(settings)
        except ModelError as error:
            known = config.kafka.every[cluster].properties
            name = next((name for name in known if f"'{name}'" in error.message), None)
            section = ("kafka", "clusters", cluster) if cluster else ("kafka",)
            at = Location(config.origin(*section, "properties", name)) if name else error.at
            hint = None if error.hint is None else settings.own(error.hint)
            raise ModelError(error.message, at, hint) from error


def _arrow(planned: PlannedPipeline) -> str:
    plan = planned.plan
    topics = ", ".join(topic.name for topic in plan.sources)
    targets = ", ".join(sink.target for sink in plan.sinks)
    forms = ", ".join(dict.fromkeys(_form(sink) for sink in plan.sinks))
    emissions = ", ".join(dict.fromkeys(chain.driving.emission for chain in chains(plan)))
    return f"{plan.name}: {topics} -> {targets} ({emissions}, {forms})"


def _form(sink: Sink) -> str:
    match sink:
        case TopicSink(format=form):
            return form
        case TableSink():
            return "table"
        case ConnectorSink(kind=kind):
            return kind
        case _:
            assert_never(sink)


def _brokers(specs: Sequence[PipelineSpec], config: Config) -> str:
    """Say with which clusters pipelines work."""
    used = sorted({cluster for spec in specs for cluster in needs_of(spec)})
    there = [
        f"{','.join(config.kafka.every[name].brokers)}{f' ({name})' if name else ''}"
        for name in used
    ]
    return f" with Kafka at {' and '.join(there)}" if there else ""


def _count(number: int) -> str:
    return f"{number} pipeline{'' if number == 1 else 's'}"


def _say(text: str) -> None:
    click.echo(text, err=True)
