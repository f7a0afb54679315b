"""Which topics of Kafka a pipeline uses, and whether it uses any."""

from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.pipeline import pipeline_topics


def kafka_topics(spec: PipelineSpec) -> tuple[str, ...]:
    """Return those of `pipeline_topics` that are no other sources."""
    return tuple(name for name in pipeline_topics(spec) if name not in spec.sources)


def dead_letter_topic(spec: PipelineSpec) -> str | None:
    """Return where a pipeline's dead letters go; None: it uses no topic, and they go into files.

    Raises:
        ModelError: As `pipeline_topics`.
    """
    uses = any(write.output.topic is not None for write in spec.writes) or kafka_topics(spec)
    default = f"{spec.name}.dead_letters" if uses else None
    return spec.dead_letters.topic or default
