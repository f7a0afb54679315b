"""`kaflow demo`: a folder of pipelines on a broker of its own, fed with sample records."""

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import click

from kaflow_engine.cli.options import (
    PositiveType,
    config_option,
    configuration,
    paths_argument,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import Clock
from kaflow_engine.cli.run.running import Manner, run_in_front
from kaflow_engine.cli.stopping import stop_requests
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.testing.sample.feed import create_topics
from kaflow_engine.testing.sample.sample_feed import Feed, sample_topics
from kaflow_engine.testing.services.broker import Broker

_START_S = 180.0
"""Seconds after which `--seconds` begins to count, even when not every pipeline runs yet."""
_LOOK_S = 0.2


@click.command("demo")
@paths_argument
@click.option(
    "--seconds",
    type=PositiveType(),
    envvar="RUN_SECONDS",
    help="Stop so long after all pipelines run; default: RUN_SECONDS, or until Ctrl-C.",
)
@click.option(
    "--rate",
    type=PositiveType(),
    default=100.0,
    show_default=True,
    help="Records per second, all topics together.",
)
@click.option("--plain", is_flag=True, help="Print lines instead of a live table.")
@config_option
@set_option
def command(
    paths: tuple[Path, ...],
    seconds: float | None,
    rate: float,
    plain: bool,
    config_path: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Run pipelines against sample data, on a broker that goes away afterwards.

    Some profiles come late and some records are broken. Nothing is left behind.
    """
    clock = Clock()
    paths, config_path = with_config(paths, config_path)
    specs = load_checked(paths, configuration(config_path, settings)).pipelines
    topics = sample_topics(specs)
    with stop_requests() as asked, ExitStack() as resources:
        clock.say("starting a Kafka broker")
        broker = resources.enter_context(Broker())
        scratch = resources.enter_context(TemporaryDirectory(prefix="kaflow-demo-"))
        config = configuration(
            config_path,
            (
                *settings,
                f"kafka.brokers={broker.bootstrap}",
                f"state.rocksdb.path={Path(scratch) / 'state'}",
            ),
        )
        create_topics(broker.settings, topics, partitions=2)
        clock.say(f"Kafka is at {broker.bootstrap}; {len(topics)} topics: {', '.join(topics)}")
        clock.say(f"sending {rate:g} records per second: late profiles, broken records and all")
        feed = Feed(broker.settings, topics, rate)
        watch = _Watch(names={spec.name for spec in specs}, clock=clock)
        try:
            with feed.running(), _deadline(seconds, watch, feed, asked):
                run_in_front(specs, config, Manner(plain=plain), asked, watch.note)
        finally:
            clock.say(f"sent {feed.sent} records in all; removing broker, topics and state")
        feed.check()
    clock.say("done")


@dataclass(slots=True)
class _Watch:
    """Notices when every pipeline runs, and when the first row was emitted."""

    names: set[str]
    clock: Clock
    running: Event = field(default_factory=Event)
    emitted: bool = False
    _now: dict[str, Progress] = field(default_factory=dict[str, Progress])

    def note(self, progress: Progress) -> None:
        self._now[progress.pipeline] = progress
        busy = {name for name, at in self._now.items() if at.state in ("running", "failed")}
        if busy == self.names and not self.running.is_set():
            self.running.set()
            self.clock.say("all pipelines run")
        if not self.emitted and progress.counters.get("emitted"):
            self.emitted = True
            self.clock.say(f"first rows, by {progress.pipeline}")


@contextmanager
def _deadline(seconds: float | None, watch: _Watch, feed: Feed, asked: Event) -> Generator[None]:
    """Ask for a stop when the time is up; the feed ends as soon as anybody asks."""
    over = Event()

    def wait() -> None:
        latest = time.monotonic() + _START_S
        while not watch.running.wait(_LOOK_S) and not asked.is_set() and not over.is_set():
            if time.monotonic() > latest:
                break
        end = None if seconds is None else time.monotonic() + seconds
        while not asked.is_set() and not over.wait(_LOOK_S):
            if end is not None and time.monotonic() > end:
                asked.set()
        feed.stop()

    thread = Thread(target=wait, name="kaflow-deadline", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5)
