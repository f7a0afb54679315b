"""Makes ready what a pipeline writes to: its topics, and the schema of its Avro output."""

from collections.abc import Mapping

from kaflow_engine.connectors.kafka_admin import create_topic, describe
from kaflow_engine.connectors.kafka_client import KafkaSettings
from kaflow_engine.errors import Location, SinkError
from kaflow_engine.formats.registry import Registry


def register_output(
    registry: Registry | None, topic: str, schema: str, at: Location | None = None
) -> int:
    """Register the Avro schema of an output topic as `<topic>-value` and return its id.

    Args:
        registry: None: the configuration names none.
        topic: The output topic.
        schema: Its Avro schema.
        at: Where the author wrote the output.

    Raises:
        SinkError: There is no registry, or it refuses; says what the registry said.
    """
    if registry is None:
        raise SinkError(
            f"output topic '{topic}' is Avro, and no schema registry is configured",
            at,
            "set kafka.schemaRegistry, or write output.format: json",
        )
    try:
        return registry.register(f"{topic}-value", schema)
    except SinkError as error:
        raise SinkError(error.message, error.at or at, error.hint) from error


def create_outputs(kafka: KafkaSettings, topics: Mapping[str, int]) -> list[str]:
    """Create those of `{topic: partitions}` that do not exist; return what was created.

    Brokers may be set up not to create topics by themselves, and a topic that they do create has
    their default partitions.

    Raises:
        SinkError: A topic cannot be created.
        SourceError: No broker answers.
    """
    known = describe(kafka, topics)
    return [
        topic
        for topic, partitions in topics.items()
        if not known[topic].exists and create_topic(kafka, topic, partitions)
    ]
