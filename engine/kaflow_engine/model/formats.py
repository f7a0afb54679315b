"""The format in which an input topic is read."""

from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec


def topic_format(spec: PipelineSpec, config: Config, topic: str) -> str:
    """Return the format of an input topic: its own, or the configuration's."""
    return spec.topic(topic).format or ("avro" if config.kafka.use_avro else "json")
