"""What brokers and registry say against a start, of all pipelines; nothing is changed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.clusters.reached import Clusters, reached
from kaflow_engine.connectors.kafka.output.alignment import Findings
from kaflow_engine.connectors.kafka.output.topics import subjects, without_registry
from kaflow_engine.connectors.kafka.permissions import require_permissions
from kaflow_engine.connectors.kafka.topic_schemas import input_topics, require_topics
from kaflow_engine.errors import KaflowError, Location, Problems, SourceError
from kaflow_engine.flow.origins.topics import TopicPlace
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explain import unknown_topics
from kaflow_engine.plan.planner.inputs.kafka_topics import kafka_topics
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.runtime.planning.columns import resolve_columns
from kaflow_engine.runtime.planning.needs import needs_of
from kaflow_engine.runtime.planning.nulls import nullable_fields
from kaflow_engine.runtime.planning.prepare import (
    Waiting,
    align_outputs,
    pin_schemas,
    plan_pipeline,
    require_registry,
)

_NOW = Waiting(milliseconds=0)


def check_connected(
    specs: Sequence[PipelineSpec], config: Config, around: Sequence[PipelineSpec] = ()
) -> dict[str, Findings]:
    """Return, by pipeline, what brokers and registry say against a start.

    Args:
        specs: Pipelines whose files are right.
        config: Where brokers and registry are.
        around: Other pipelines, whose output topics may be missing, too: their start creates them.

    Raises:
        SourceError: No broker answers.
    """
    clusters = reached(config)
    used = {cluster for spec in specs for cluster in needs_of(spec)}
    read = {topic for spec in specs for topic in _places(spec).values()}
    missing: set[TopicPlace] = set()
    for cluster in sorted(used):
        topics = {place.topic: place for place in read if place.cluster == cluster}
        found = describe(clusters[cluster].kafka, topics)
        missing |= {topics[topic] for topic, info in found.items() if not info.exists}
    written = {
        TopicPlace(cluster=write.output.cluster or "", topic=write.output.topic)
        for spec in (*specs, *around)
        for write in spec.writes
        if write.output.topic is not None
    }
    return {
        spec.name: _findings(spec, config, clusters, missing, missing & written) for spec in specs
    }


def _places(spec: PipelineSpec) -> dict[str, TopicPlace]:
    """Return where the topics are that a pipeline reads, by what it calls them."""
    return {
        name: TopicPlace(cluster=said.cluster or "", topic=said.topic or name)
        for name in kafka_topics(spec)
        if (said := spec.topic(name))
    }


def _findings(
    spec: PipelineSpec,
    config: Config,
    clusters: Clusters,
    missing: Collection[TopicPlace],
    later: Collection[TopicPlace],
) -> Findings:
    absent = {name: place for name, place in _places(spec).items() if place in missing}
    mistakes = [
        error
        for name, place in absent.items()
        if place not in later
        for error in _absent(spec, config, name)
    ]
    for cluster, needs in needs_of(spec).items():
        kafka = clusters[cluster].kafka
        mistakes += _raised(partial(require_permissions, kafka, needs))
    unknown = set(unknown_topics(spec))
    if unknown & absent.keys():
        there = [topic for topic in unknown if topic not in absent]
        mistakes += _without_columns(spec, config, there)
        return Findings(mistakes=_each_once(mistakes))
    try:
        planned = plan_pipeline(spec, config, waiting=_NOW)
    except SourceError as error:
        found = _without_columns(spec, config, sorted(unknown))
        return Findings(mistakes=_each_once([*mistakes, *(found or [error])]))
    except KaflowError as error:
        parts = error.errors if isinstance(error, Problems) else (error,)
        return Findings(mistakes=_each_once([*mistakes, *parts]))
    without = _raised(lambda: require_registry(planned, clusters))
    mistakes += without or _raised(lambda: pin_schemas(planned, clusters))
    mistakes += _without_registry(planned, clusters)
    nulls = _found(lambda: _nulls(planned, clusters))
    aligned = _found(lambda: align_outputs(planned, clusters, compare=True))
    return Findings(
        mistakes=_each_once([*mistakes, *nulls.mistakes, *aligned.mistakes]),
        notices=(*nulls.notices, *aligned.notices),
    )


def _absent(spec: PipelineSpec, config: Config, topic: str) -> list[KaflowError]:
    at: Mapping[str, Location] = {topic: spec.place("query")}
    return _raised(lambda: require_topics(input_topics(spec, config), [topic], at))


def _without_columns(
    spec: PipelineSpec, config: Config, topics: Sequence[str]
) -> list[KaflowError]:
    """Return why columns are not known, of each topic."""
    return [
        error
        for topic in topics
        for error in _raised(lambda name=topic: resolve_columns(spec, config, [name], wait_ms=0))
    ]


def _without_registry(planned: PlannedPipeline, clusters: Clusters) -> Iterator[KaflowError]:
    for sink, write in zip(planned.plan.sinks, planned.spec.writes, strict=True):
        if isinstance(sink, TopicSink) and clusters[sink.cluster].registry is None:
            for subject, _ in subjects(sink):
                yield without_registry(subject, planned.spec.place(*write.at), sink.cluster)


def _nulls(planned: PlannedPipeline, clusters: Clusters) -> Findings:
    nullable, checks = nullable_fields(planned, clusters), planned.spec.nulls
    return Findings(
        mistakes=checks.mistakes(nullable, where="on"),
        notices=checks.mistakes(nullable, where="warn"),
    )


def _found(look: Callable[[], Findings]) -> Findings:
    """Return what a look finds, or why it could not be taken."""
    try:
        return look()
    except KaflowError as error:
        return Findings(mistakes=(error,))


def _raised(check: Callable[[], object]) -> list[KaflowError]:
    """Return what a check raises, so that the others are made as well."""
    try:
        check()
    except KaflowError as error:
        return [error]
    return []


def _each_once(errors: Sequence[KaflowError]) -> tuple[KaflowError, ...]:
    return tuple({str(error): error for error in errors}.values())
