"""`make run`: a project in Dagster, with a broker of its own, sample data, and all switches on."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import click

from kaflow_dagster.development.dev import Dev
from kaflow_dagster.development.instance import Instance
from kaflow_dagster.runs.names import PIPELINE
from kaflow_engine.api.errors import RunError
from kaflow_engine.api.local import (
    Broker,
    Clock,
    Feed,
    PositiveType,
    create_topics,
    free_ports,
    sample_topics,
    stop_requests,
)
from kaflow_engine.api.project import load_config, load_project

_LOAD_S = 600.0
_STREAM_S = 600.0
_DRAIN_S = 90.0
_LOOK_S = 0.5
_ENDED = frozenset({"SUCCESS", "FAILURE", "CANCELED"})


@click.command("local_stack")
@click.argument("project", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--workspace", type=click.Path(path_type=Path, exists=True), default="workspace.yaml")
@click.option("--port", type=click.IntRange(0, 65535), default=3000, help="0: any free.")
@click.option("--rate", type=PositiveType(), default=50.0, help="Sample records per second.")
@click.option(
    "--seconds",
    type=PositiveType(),
    envvar="RUN_SECONDS",
    help="Stop so long after all streams run; default: RUN_SECONDS, or until Ctrl-C.",
)
def command(
    project: Path,
    config: Path | None,
    workspace: Path,
    port: int,
    rate: float,
    seconds: float | None,
) -> None:
    """Run a project in Dagster against sample data, on a broker that goes away afterwards."""
    clock = Clock()
    specs = load_project([project], load_config(config)).pipelines
    topics = sample_topics(specs)
    units = sorted({spec.group or spec.name for spec in specs})
    with stop_requests() as asked, ExitStack() as resources:
        clock.say("starting a Kafka broker")
        broker = resources.enter_context(Broker())
        scratch = Path(resources.enter_context(TemporaryDirectory(prefix="kaflow-local-stack-")))
        create_topics(broker.settings, topics, partitions=2)
        clock.say(f"Kafka is at {broker.bootstrap}; {len(topics)} topics: {', '.join(topics)}")
        feed = Feed(broker.settings, topics, rate, yesterday=True)
        resources.enter_context(feed.running())
        clock.say(f"sending {rate:g} records per second: late profiles, broken records and all")
        instance = Instance(port or free_ports(1)[0])
        clock.say(f"starting Dagster at {instance.address}; loading takes a while")
        dagster = resources.enter_context(_dagster(instance, workspace, scratch, broker.bootstrap))
        if _wait(dagster, instance.has_loaded, _LOAD_S, asked):
            for sensor in instance.sensors():
                instance.switch_on(sensor)
            for schedule in instance.schedules():
                instance.schedule_on(schedule)
            clock.say(f"all switches are on; starting {', '.join(units)}")
            resources.callback(_drain, instance, units, clock)
            streams = {f"streams/{spec.name}" for spec in specs}
            if _wait(dagster, lambda: instance.materialized() >= streams, _STREAM_S, asked):
                clock.say("all streams run")
                click.echo(_tour(instance, [spec.name for spec in specs]))
                _wait(dagster, lambda: False, seconds, asked)
        clock.say("stopping; broker, topics, state and tables are removed")
    feed.check()
    clock.say("done")


def _wait(dagster: Dev, holds: Callable[[], bool], seconds: float | None, asked: Event) -> bool:
    """Wait until a condition holds; False when someone asked to stop, or the time is up."""
    end = None if seconds is None else time.monotonic() + seconds
    while not holds():
        if not dagster.runs:
            raise RunError("Dagster ended by itself", hint=dagster.words())
        if asked.wait(_LOOK_S) or (end is not None and time.monotonic() > end):
            return False
    return True


@contextmanager
def _dagster(instance: Instance, workspace: Path, scratch: Path, brokers: str) -> Generator[Dev]:
    """Run page, daemon and code location; they end with the block."""
    home = scratch / "dagster_home"
    home.mkdir()
    settings = files("kaflow_engine.cli").joinpath("new_project", "dagster_home", "dagster.yaml")
    home.joinpath("dagster.yaml").write_text(settings.read_text(encoding="utf-8"))
    environment = {
        "DAGSTER_HOME": str(home),
        "TMPDIR": str(scratch),  # what a run that is cut off leaves goes with the rest
        "KAFLOW__KAFKA__BROKERS": brokers,
        "KAFLOW__STATE__ROCKSDB__PATH": str(scratch / "state"),
        "KAFLOW__WAREHOUSE": str(scratch / "warehouse"),
    }
    log = scratch / "dagster.log"
    found = Dev.start(workspace, instance.port, log, environment, Path.cwd())
    try:
        yield found
    finally:
        found.stop()
        found.kill()


def _drain(instance: Instance, units: Sequence[str], clock: Clock) -> None:
    """Switch everything off, and let the runs finish their batches."""
    clock.say("draining the streams")
    with suppress(OSError, ValueError):
        for sensor in instance.sensors():
            instance.switch_off(sensor)
        for run in (run for unit in units for run in instance.runs({PIPELINE: unit})):
            if run["status"] not in _ENDED:
                instance.terminate(run["runId"])
        end = time.monotonic() + _DRAIN_S
        while time.monotonic() < end:
            runs = [run for unit in units for run in instance.runs({PIPELINE: unit})]
            if all(run["status"] in _ENDED for run in runs):
                return
            time.sleep(_LOOK_S)


def _tour(instance: Instance, pipelines: Sequence[str]) -> str:
    page = instance.address
    return "\n".join(
        [
            "",
            f"  {page}/assets                topics, streams and tables",
            f"  {page}/asset-groups          how they hang together",
            f"  {page}/assets/streams/{pipelines[0]}?view=overview",
            "                               health of a stream, plotted",
            f"  {page}/automation            the switches, and why they do what they do",
            f"  {page}/runs                  the sessions; terminate one to drain it",
            "",
            "  Checks run every five minutes. Materialize a table to backfill its partitions.",
            "  Ctrl-C stops everything.",
            "",
        ]
    )


if __name__ == "__main__":
    command(prog_name="make run")
