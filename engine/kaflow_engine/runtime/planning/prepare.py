"""Prepares plans for a run: columns resolved, schemas registered, topics created."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.output.alignment import (
    Findings,
    judge_output,
    look_at_output,
)
from kaflow_engine.connectors.kafka.output.topics import (
    create_outputs,
    new_topics,
    register_output,
    subjects,
)
from kaflow_engine.connectors.kafka.permissions import Need, require_permissions
from kaflow_engine.connectors.kafka.replication import Replication, warn_of_single_copies
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.connectors.kafka.topic_schemas import (
    registry_of,
    require_topics,
)
from kaflow_engine.connectors.kafka.wait import await_brokers, await_topics
from kaflow_engine.errors import ModelError, Problems, SourceError
from kaflow_engine.flow.chains.chain import driving_topics
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import topic_sinks
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import raise_as_found
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.start_decision import read_state
from kaflow_engine.plan.planner.dependencies import producers_first
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_topic, kafka_topics
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.runtime.planning.columns import require_sources, resolve_columns
from kaflow_engine.runtime.planning.nulls import nullable_fields
from kaflow_engine.runtime.planning.plan_with_state import plan_with_state, with_schema_ids

LOGGER = logging.getLogger("kaflow.prepare")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How long columns that are not known yet are waited for."""

    milliseconds: int = 60_000
    stopped: Callable[[], bool] = lambda: False
    """Asked meanwhile whether to give up."""
    endless: bool = True
    """Topics whose file says `wait_for` are waited for without end."""


def prepare(
    specs: Sequence[PipelineSpec],
    config: Config,
    say: Say = lambda text: None,
    waiting: Waiting | None = None,
) -> tuple[PlannedPipeline, ...]:
    """Plan pipelines and make ready what they write to, in the order of `specs`.

    Everything that files can have wrong is reported before a broker is asked. Columns that the
    state of a pipeline holds are used again, so that a restart reads what it read before.

    Args:
        specs: What the author wrote.
        config: The same for all.
        say: Told what is waited for and what is created.
        waiting: For columns that no one declares.

    Raises:
        ModelError: Mistakes in files.
        SourceError: A topic is missing, or may not be read or written, or its columns cannot be
            found.
        SinkError: An output topic cannot be created, or its schema is refused.
    """
    check(specs, config)
    patience = waiting or Waiting()
    if any(dead_letter_topic(spec) for spec in specs):
        kafka = KafkaSettings.configured(config.kafka)
        await_brokers(kafka, config.retry_deadline, say, patience.stopped)
    ready: dict[str, PlannedPipeline] = {}
    for spec in producers_first(specs):
        ready[spec.name] = _prepare(spec, config, say, patience)
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
    kafka = KafkaSettings.configured(config.kafka)
    if waiting.endless:
        awaited = [topic for topic in kafka_topics(spec) if spec.topic(topic).wait_for]
        await_topics(kafka, awaited, say, waiting.stopped)
    require_permissions(kafka, needs_of(spec))
    planned = plan_pipeline(spec, config, say, waiting)
    names = [topic.name for topic in planned.plan.sources if topic.connector is None]
    counts = require_topics(kafka, names, dict.fromkeys(names, spec.place("query")))
    registry = registry_of(config)
    require_registry(planned, registry)
    planned = pin_schemas(planned, registry)
    nullable = nullable_fields(planned, registry)
    raise_as_found(spec.nulls.mistakes(nullable, where="on"))
    found = align_outputs(planned, kafka, registry, compare=False)
    for mistake in found.mistakes:
        raise mistake
    for notice in (*spec.nulls.mistakes(nullable, where="warn"), *found.notices):
        LOGGER.warning("%s", notice)
    ids = {
        (subject.part, sink.id): register_output(registry, subject, schema, spec.place(*write.at))
        for sink, write in zip(planned.plan.sinks, spec.writes, strict=True)
        if isinstance(sink, TopicSink)
        for subject, schema in subjects(sink)
    }
    of = {part: {s: n for (p, s), n in ids.items() if p == part} for part in ("value", "key")}
    planned = planned.with_avro_ids(of["value"], of["key"])
    said = {w.target: w.output.new_topic for w in spec.writes if w.output.new_topic is not None}
    compacted = {sink.topic for sink in topic_sinks(planned.plan) if sink.compacted}
    replication = Replication.of(config.kafka)
    topics = new_topics(partitions_of(planned.plan, counts), said, replication, compacted)
    for created in create_outputs(kafka, topics, config.retry_deadline):
        count = topics[created].partitions
        say(f"created topic '{created}' with {count} partition{'' if count == 1 else 's'}")
    loses = dict.fromkeys(topics, "rows that were delivered are lost")
    forgets = "it is forgotten which rows were delivered, and they are written again"
    warn_of_single_copies(kafka, {**loses, control_topic(planned.plan.pipeline): forgets})
    return planned


def align_outputs(
    planned: PlannedPipeline, kafka: KafkaSettings, registry: Registry | None, *, compare: bool
) -> Findings:
    """Return how outputs disagree with topics that exist, and with schemas of their values.

    Args:
        planned: With its outputs.
        kafka: Where the brokers are.
        registry: None: the configuration names none.
        compare: Ask whether schemas are compatible, too; a start learns it when it registers them.

    Raises:
        SourceError: No broker answers, or the registry does not while schemas are compared.
    """
    sinks = [
        (sink, planned.spec.place(*write.at))
        for sink, write in zip(planned.plan.sinks, planned.spec.writes, strict=True)
        if isinstance(sink, TopicSink)
    ]
    there = describe(kafka, [sink.topic for sink, _ in sinks]) if sinks else {}
    each: list[Findings] = []
    for sink, at in sinks:
        exists = there[sink.topic].exists
        topic = look_at_output(kafka, registry, sink, exists=exists, compare=compare)
        each.append(judge_output(sink, topic, at, kafka.bootstrap))
    return Findings(
        mistakes=tuple(mistake for found in each for mistake in found.mistakes),
        notices=tuple(notice for found in each for notice in found.notices),
    )


def require_registry(planned: PlannedPipeline, registry: Registry | None) -> None:
    """Check that there is a registry where topics are read that need one.

    Raises:
        ModelError: There is none.
    """
    traits = [format_of(topic.format).traits for topic in planned.plan.sources]
    title = next((each.title for each in traits if each.registered), None)
    if title is not None and registry is None:
        raise ModelError(
            f"pipeline '{planned.spec.name}' reads {title}, and no schema registry is configured",
            planned.spec.at,
            "set kafka.schemaRegistry",
        )


def needs_of(spec: PipelineSpec) -> list[Need]:
    """Return what a pipeline does with topics; nothing where it needs no broker."""
    letters, own = dead_letter_topic(spec), control_topic(spec.id)
    if letters is None:
        return []
    read = [
        Need(topic=topic, operation="Read", at=spec.place("query")) for topic in kafka_topics(spec)
    ]
    written = [
        Need(topic=write.output.topic, operation="Write", at=spec.place(*write.at))
        for write in spec.writes
        if write.output.topic is not None
    ]
    return [
        *read,
        *written,
        Need(topic=letters, operation="Write", at=spec.place("dead_letters")),
        Need(topic=own, operation="Read", at=spec.at),
        Need(topic=own, operation="Write", at=spec.at),
    ]


def partitions_of(plan: Flow, counts: Mapping[str, int]) -> dict[str, int]:
    """Return how many partitions the topics get that a plan writes, where they do not exist.

    A topic has as many as the one that its rows are made of: of several the most; that of the dead
    letters as many as any of them. Other sources than topics count as many as the state has.

    Args:
        plan: What writes them.
        counts: The partitions of the topics that it reads.
    """
    counts = {topic.name: counts.get(topic.name, plan.partitions) for topic in plan.sources}
    found = {
        sink.topic: max(counts[topic.name] for topic in driving_topics(plan, sink))
        for sink in topic_sinks(plan)
    }
    if plan.dead_letter_topic is not None:
        most = max(counts[topic.name] for topic in plan.sources if topic.drives)
        found[plan.dead_letter_topic] = most
    return found


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


def pin_schemas(planned: PlannedPipeline, registry: Registry | None) -> PlannedPipeline:
    """Note, for topics with `on_schema_change: fail`, the schema that others are compared with.

    Raises:
        SourceError: A topic has none.
    """
    wanted = [
        topic.name
        for topic in planned.plan.sources
        if planned.spec.topic(topic.name).on_schema_change == "fail" and topic.schema_id is None
    ]
    found: dict[str, int] = {}
    for name in wanted:
        latest = registry.latest(f"{name}-value") if registry else None
        if latest is None:
            raise SourceError(
                f"'on_schema_change: fail' of '{name}' needs a schema to compare with, and the "
                f"schema registry has no subject '{name}-value'",
                planned.spec.place("topics", name, "on_schema_change"),
                "start when its producer has registered a schema, or remove on_schema_change",
            )
        found[name] = latest.id
    return with_schema_ids(planned, found)
