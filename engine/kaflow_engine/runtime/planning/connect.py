"""What brokers and registry say against a start, of all pipelines; nothing is changed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.output.alignment import Findings
from kaflow_engine.connectors.kafka.output.topics import subjects, without_registry
from kaflow_engine.connectors.kafka.permissions import require_permissions
from kaflow_engine.connectors.kafka.topic_schemas import (
    registry_of,
    require_topics,
)
from kaflow_engine.errors import KaflowError, Location, Problems, SourceError
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explain import unknown_topics
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_topic, kafka_topics
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.runtime.planning.columns import resolve_columns
from kaflow_engine.runtime.planning.nulls import nullable_fields
from kaflow_engine.runtime.planning.prepare import (
    Waiting,
    align_outputs,
    needs_of,
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
    kafka, registry = KafkaSettings.configured(config.kafka), registry_of(config)
    topics = {topic for spec in specs for topic in kafka_topics(spec)}
    found = describe(kafka, topics) if any(map(dead_letter_topic, specs)) else {}
    missing = {topic for topic, info in found.items() if not info.exists}
    written = {write.output.topic for spec in (*specs, *around) for write in spec.writes}
    return {
        spec.name: _findings(spec, config, kafka, registry, missing, missing & written)
        for spec in specs
    }


def _findings(
    spec: PipelineSpec,
    config: Config,
    kafka: KafkaSettings,
    registry: Registry | None,
    missing: Collection[str],
    later: Collection[str],
) -> Findings:
    absent, needs = [t for t in kafka_topics(spec) if t in missing], needs_of(spec)
    mistakes = [
        *(error for topic in absent if topic not in later for error in _absent(spec, kafka, topic)),
        *_raised(lambda: require_permissions(kafka, needs) if needs else None),
    ]
    unknown = set(unknown_topics(spec))
    if unknown & set(absent):
        there = [topic for topic in unknown if topic not in missing]
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
    mistakes += _raised(lambda: require_registry(planned, registry))
    if registry is not None:
        mistakes += _raised(lambda: pin_schemas(planned, registry))
    mistakes += _without_registry(planned, registry)
    nulls = _found(lambda: _nulls(planned, registry))
    aligned = _found(lambda: align_outputs(planned, kafka, registry, compare=True))
    return Findings(
        mistakes=_each_once([*mistakes, *nulls.mistakes, *aligned.mistakes]),
        notices=(*nulls.notices, *aligned.notices),
    )


def _absent(spec: PipelineSpec, kafka: KafkaSettings, topic: str) -> list[KaflowError]:
    at: Mapping[str, Location] = {topic: spec.place("query")}
    return _raised(lambda: require_topics(kafka, [topic], at))


def _without_columns(
    spec: PipelineSpec, config: Config, topics: Sequence[str]
) -> list[KaflowError]:
    """Return why columns are not known, of each topic."""
    return [
        error
        for topic in topics
        for error in _raised(lambda name=topic: resolve_columns(spec, config, [name], wait_ms=0))
    ]


def _without_registry(planned: PlannedPipeline, registry: Registry | None) -> Iterator[KaflowError]:
    for sink, write in zip(planned.plan.sinks, planned.spec.writes, strict=True):
        if registry is None and isinstance(sink, TopicSink):
            for subject, _ in subjects(sink):
                yield without_registry(subject, planned.spec.place(*write.at))


def _nulls(planned: PlannedPipeline, registry: Registry | None) -> Findings:
    nullable, checks = nullable_fields(planned, registry), planned.spec.nulls
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
