"""Runs a pipeline in this process and gives what its nodes make; nothing of it stays."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Event
from typing import Literal

from kaflow_engine.connectors.kafka.clusters.reached import reached, registry_of
from kaflow_engine.connectors.kafka.topic_schemas import input_topics, require_topics
from kaflow_engine.errors import SourceError
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.formats.schema_registry import UnknownSchema
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.files.yaml_file import raise_as_found
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.functions import use_functions
from kaflow_engine.plan.planner.inputs.kafka_topics import kafka_topics
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.preview.plan import PreviewPlan, plan_preview
from kaflow_engine.preview.reads import Reads, open_reads
from kaflow_engine.preview.rows import Shown, shown
from kaflow_engine.runtime.clock.batch_clock import wall_clock
from kaflow_engine.runtime.clock.ticks import QUIET_MS, TICK_MS
from kaflow_engine.runtime.planning.nulls import nullable_fields
from kaflow_engine.runtime.planning.prepare import (
    Say,
    Waiting,
    pin_schemas,
    plan_pipeline,
    require_registry,
)
from kaflow_engine.runtime.sink.opening import connections_of
from kaflow_engine.runtime.source.offsets import (
    merged,
    only,
    ranges_between,
    reaches,
    size_of,
    unread,
)
from kaflow_engine.runtime.takeover.open_state import new_stream_state
from kaflow_engine.state.log.batch_log import Offsets
from kaflow_engine.testing.local.executor import LocalBatch, LocalPipeline

_LOOK_S = QUIET_MS / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be shown."""

    node: str | None = None
    """The name of a relation or an output; None: all of them."""
    seconds: float = 60.0
    """How long, from when the inputs are open."""
    rows: int | None = None
    """After how many rows it ends; None: it does not."""
    since: Literal["latest", "earliest"] = "latest"
    """Where events begin. What is kept by key, as dimensions are, is read whole before, as a first
    run does; so are sources that come to an end."""


@dataclass(frozen=True, slots=True)
class _Patience:
    """Until when someone looks."""

    stop: Event
    until: float
    """By the monotonic clock, in seconds."""

    @property
    def over(self) -> bool:
        return self.stop.is_set() or time.monotonic() >= self.until

    def wait(self) -> None:
        """Let some time pass, unless it is over before."""
        self.stop.wait(max(0.0, min(_LOOK_S, self.until - time.monotonic())))


def preview(
    spec: PipelineSpec,
    config: Config,
    asked: Asked,
    stop: Event,
    say: Say = lambda text: None,
) -> Iterator[Shown]:
    """Yield the rows of nodes and dead letters as they are made, of a run that begins now.

    Nothing is written: no sink is opened, no topic created, no schema registered, no offset
    committed, and the state is in memory. Services and databases that queries ask are asked.

    Args:
        spec: What the author wrote, which is sound.
        config: Where brokers, registry and databases are.
        asked: What is shown.
        stop: Set when no one looks any more.
        say: Called with what happens meanwhile.

    Raises:
        UnknownName: There is no such node.
        ModelError: It cannot be shown by itself.
        SourceError: What is read is not there, or does not answer.
    """
    config = with_brought(config, [spec])
    use_functions(config)
    try:
        plan = plan_preview(spec, asked.node, partial(_planned, config, stop, say))
    except SourceError:
        if stop.is_set():  # while columns were waited for
            return
        raise
    for each in plan.hidden:
        say(f"notice: '{each.name}' is not shown by itself: {each.why.message}")
    with open_reads(plan.planned.plan, config) as reads:
        say(f"previewing '{spec.name}': {', '.join(node.name for node in plan.nodes)}")
        patience = _Patience(stop, time.monotonic() + asked.seconds)
        found = (each for batch in _batches(plan, config, reads, asked, patience, say)
                 for each in shown(plan, batch.output))  # fmt: skip
        yield from islice(found, asked.rows)


def _planned(config: Config, stop: Event, say: Say, spec: PipelineSpec) -> PlannedPipeline:
    """Plan as a start does, and leave out what it writes."""
    clusters = reached(config)
    topics = kafka_topics(spec)
    if topics:
        require_topics(
            input_topics(spec, config), topics, dict.fromkeys(topics, spec.place("query"))
        )
    planned = plan_pipeline(spec, config, say, Waiting(stopped=stop.is_set))
    require_registry(planned, clusters)
    planned = pin_schemas(planned, clusters)
    raise_as_found(spec.nulls.mistakes(nullable_fields(planned, clusters), where="on"))
    return planned


def _batches(
    plan: PreviewPlan, config: Config, reads: Reads, asked: Asked, patience: _Patience, say: Say
) -> Iterator[LocalBatch]:
    """Run batch after batch: what is kept first, then all that comes, until it is over."""
    flow = plan.planned.plan
    places = {name: range(count) for name, count in reads.counts.items()}
    pipeline = LocalPipeline(
        flow,
        places,
        schema_by_id=partial(schema_of, config),
        connections=connections_of(config).known,
    )
    begin = new_stream_state(flow, reads.inputs, asked.since, wall_clock(), {}, reads.counts)
    at, now, ticked = begin.start, begin.created_ms, 0
    if left := size_of(
        ranges_between(only(at, frozenset(begin.dimension_ends)), begin.dimension_ends)
    ):
        say(f"{left} record{' is' if left == 1 else 's are'} loaded first, as a first run does")
    while not patience.over:
        ends = reads.latest()
        goal = begin.dimension_ends if unread(at, begin.dimension_ends) else ends
        now = max(now, wall_clock())
        if unread(at, goal):
            taken = reads.take(at, goal)
            at = merged(at, taken.ends)
            yield pipeline.run(taken.records, now, _behind(at, ends))
        elif reads.ended() and reaches(at, reads.latest()):
            yield pipeline.end(now)
            return
        elif now - ticked >= TICK_MS:  # time passes only with batches
            ticked = now
            yield pipeline.run(RECORDS.empty_table(), now)
        else:
            patience.wait()
    if unread(at, begin.dimension_ends):
        say("the time was up before all that is kept was loaded; ask for more seconds")


def _behind(at: Offsets, ends: Offsets) -> frozenset[tuple[str, int]]:
    return frozenset((name, part) for name, parts in unread(at, ends).items() for part in parts)


def schema_of(config: Config, schema_id: int, cluster: str) -> str:
    """Return the writer schema registered under an id, with the registry of a cluster.

    Raises:
        UnknownSchema: There is none.
        SourceError: The registry does not answer.
    """
    registry = registry_of(config, cluster)
    if registry is None:
        raise UnknownSchema(schema_id)
    return registry.by_id(schema_id)
