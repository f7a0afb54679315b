"""Prepares plans for a run: columns resolved, schemas registered, topics created."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.connectors.kafka.clusters.reached import Clusters, reached, registry_key
from kaflow_engine.connectors.kafka.output.alignment import (
    Findings,
    judge_output,
    look_at_output,
)
from kaflow_engine.connectors.kafka.output.topics import register_output, subjects
from kaflow_engine.connectors.kafka.permissions import require_permissions
from kaflow_engine.connectors.kafka.topic_schemas import input_topics, require_topics
from kaflow_engine.connectors.kafka.wait import await_brokers, await_topics
from kaflow_engine.errors import ModelError, Problems, SourceError
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import raise_as_found
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.start_decision import read_state
from kaflow_engine.plan.planner.dependencies import producers_first
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_topic, kafka_topics
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.runtime.planning.columns import require_sources, resolve_columns
from kaflow_engine.runtime.planning.needs import needs_of
from kaflow_engine.runtime.planning.nulls import nullable_fields
from kaflow_engine.runtime.planning.plan_with_state import plan_with_state, with_schema_ids
from kaflow_engine.runtime.planning.written_topics import create_topics

LOGGER = logging.getLogger("kaflow.prepare")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How long columns that are not known yet are waited for."""

    milliseconds: int = 60_000
    stopped: Callable[[], bool] = lambda: False
    """Asked meanwhile whether to give up."""
    endless: bool = False
    """Topics whose file says `wait_for` are waited for without end, as a stream does."""


def prepare(
    specs: Sequence[PipelineSpec],
    config: Config,
    say: Say = lambda text: None,
    waiting: Waiting | None = None,
    checked: Callable[[Config], None] = lambda config: None,
) -> tuple[PlannedPipeline, ...]:
    """Plan pipelines and make ready what they write to, in the order of `specs`.

    Everything that files can have wrong is reported before a broker is asked. Columns that the
    state of a pipeline holds are used again, so that a restart reads what it read before.

    Args:
        specs: What the author wrote.
        config: The same for all.
        say: Called with what is waited for and what is created.
        waiting: For columns that no one declares; None: as a stream waits.
        checked: Called before a broker is asked, where nothing is wrong in files.

    Raises:
        ModelError: Mistakes in files.
        SourceError: A topic is missing, or may not be read or written, or its columns cannot be
            found.
        SinkError: An output topic cannot be created, or its schema is refused.
    """
    check(specs, config)
    checked(config)
    patience = waiting or Waiting(endless=True)
    used = {cluster for spec in specs for cluster in needs_of(spec)}
    for cluster, there in reached(config).items():
        if cluster in used:
            await_brokers(there.kafka, config.retry_deadline, say, patience.stopped)
    ready: dict[str, PlannedPipeline] = {}
    for spec in producers_first(specs):
        for line in spec.brought.starting:
            say(line)
        ready[spec.name] = _prepare(spec, config, say, patience)
        if spec.brought.ready is not None:
            say(spec.brought.ready)
    return tuple(ready[spec.name] for spec in specs)


def check(specs: Sequence[PipelineSpec], config: Config | None = None) -> None:
    """Check all that needs no broker.

    Raises:
        ModelError: The one mistake.
        Problems: All of several.
    """
    mistakes: list[ModelError] = []
    for spec in specs:
        try:
            check_pipeline(spec, config)
        except ModelError as error:
            mistakes += error.errors if isinstance(error, Problems) else (error,)
    if mistakes:
        raise mistakes[0] if len(mistakes) == 1 else Problems(mistakes)


def _prepare(spec: PipelineSpec, config: Config, say: Say, waiting: Waiting) -> PlannedPipeline:
    if dead_letter_topic(spec) is None:
        return plan_pipeline(spec, config, say, waiting)
    clusters = reached(config)
    if waiting.endless:
        awaited = [topic for topic in kafka_topics(spec) if spec.topic(topic).wait_for]
        for some in input_topics(spec, config).by_cluster(awaited):
            await_topics(some.kafka, list(some.names), config.retry_deadline, say, waiting.stopped)
    for cluster, needs in needs_of(spec).items():
        require_permissions(clusters[cluster].kafka, needs)
    planned = plan_pipeline(spec, config, say, waiting)
    names = [topic.name for topic in planned.plan.sources if topic.connector is None]
    inputs = InputTopics.of(config.kafka, planned.plan.sources)
    counts = require_topics(inputs, names, dict.fromkeys(names, spec.place("query")))
    require_registry(planned, clusters)
    planned = pin_schemas(planned, clusters)
    nullable = nullable_fields(planned, clusters)
    raise_as_found(spec.nulls.mistakes(nullable, where="on"))
    found = align_outputs(planned, clusters, compare=False)
    for mistake in found.mistakes:
        raise mistake
    for notice in (*spec.nulls.mistakes(nullable, where="warn"), *found.notices):
        LOGGER.warning("%s", notice)
    ids = {
        (subject.part, sink.id): register_output(
            clusters[sink.cluster].registry, subject, schema, spec.place(*write.at), sink.cluster
        )
        for sink, write in zip(planned.plan.sinks, spec.writes, strict=True)
        if isinstance(sink, TopicSink)
        for subject, schema in subjects(sink)
    }
    of = {part: {s: n for (p, s), n in ids.items() if p == part} for part in ("value", "key")}
    planned = planned.with_avro_ids(of["value"], of["key"])
    for cluster in sorted(planned.plan.written_clusters):
        create_topics(planned, clusters[cluster], counts, config.retry_deadline, say)
    return planned


def align_outputs(planned: PlannedPipeline, clusters: Clusters, *, compare: bool) -> Findings:
    """Return how outputs disagree with topics that exist, and with schemas of their values.

    Args:
        planned: With its outputs.
        clusters: Where brokers and registries are.
        compare: Ask whether schemas are compatible, too; a start learns it when it registers them.

    Raises:
        SourceError: No broker answers, or the registry does not while schemas are compared.
    """
    sinks = [
        (sink, planned.spec.place(*write.at))
        for sink, write in zip(planned.plan.sinks, planned.spec.writes, strict=True)
        if isinstance(sink, TopicSink)
    ]
    there = {
        cluster: describe(
            clusters[cluster].kafka, [s.topic for s, _ in sinks if s.cluster == cluster]
        )
        for cluster in sorted({sink.cluster for sink, _ in sinks})
    }
    each: list[Findings] = []
    for sink, at in sinks:
        own, exists = clusters[sink.cluster], there[sink.cluster][sink.topic].exists
        topic = look_at_output(own.kafka, own.registry, sink, exists=exists, compare=compare)
        each.append(judge_output(sink, topic, at, own.kafka.bootstrap))
    return Findings(
        mistakes=tuple(mistake for found in each for mistake in found.mistakes),
        notices=tuple(notice for found in each for notice in found.notices),
    )


def require_registry(planned: PlannedPipeline, clusters: Clusters) -> None:
    """Check that there is a registry where topics are read that need one.

    Raises:
        ModelError: There is none.
    """
    for topic in planned.plan.sources:
        traits = format_of(topic.format).traits
        if traits.registered and clusters[topic.cluster].registry is None:
            raise ModelError(
                f"pipeline '{planned.spec.name}' reads {traits.title}, and no schema registry is "
                "configured",
                planned.spec.at,
                f"set {registry_key(topic.cluster)}",
            )


def plan_pipeline(
    spec: PipelineSpec, config: Config, say: Say = lambda text: None, waiting: Waiting | None = None
) -> PlannedPipeline:
    """Plan one pipeline with columns that are declared, pinned by its state, or looked up.

    Raises:
        ModelError: Mistakes in the file.
        SourceError: Columns cannot be found.
    """
    patience = waiting or Waiting()
    resolve = partial(
        resolve_columns,
        spec,
        config,
        wait_ms=patience.milliseconds,
        on_wait=say,
        stopped=patience.stopped,
        endless=patience.endless,
    )
    stored = read_state(Path(config.state.rocksdb.path).absolute() / spec.id)
    if stored.state is None:
        require_sources(spec, config)
    return plan_with_state(spec, config, stored, resolve)


def pin_schemas(planned: PlannedPipeline, clusters: Clusters) -> PlannedPipeline:
    """Note, for topics with `on_schema_change: fail`, the schema that others are compared with.

    Raises:
        SourceError: A topic has none.
    """
    wanted = [
        topic
        for topic in planned.plan.sources
        if planned.spec.topic(topic.name).on_schema_change == "fail" and topic.schema_id is None
    ]
    found: dict[str, int] = {}
    for topic in wanted:
        name, registry = topic.name, clusters[topic.cluster].registry
        subject = f"{topic.place.topic}-value"
        latest = registry.latest(subject) if registry else None
        if latest is None:
            raise SourceError(
                f"'on_schema_change: fail' of '{name}' needs a schema to compare with, and the "
                f"schema registry has no subject '{subject}'",
                planned.spec.place("topics", name, "on_schema_change"),
                "start when its producer has registered a schema, or remove on_schema_change",
            )
        found[name] = latest.id
    return with_schema_ids(planned, found)
