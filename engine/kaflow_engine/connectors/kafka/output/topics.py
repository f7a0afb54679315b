"""Makes ready what a pipeline writes to: its topics, and the schema of their values."""

from collections.abc import Collection, Mapping

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.replication import Replication
from kaflow_engine.errors import Location, SinkError
from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.schema_registry import Registry

COMPACTED = {"cleanup.policy": "compact"}


def register_output(
    registry: Registry | None, topic: str, form: str, schema: str, at: Location | None = None
) -> int:
    """Register the schema of an output topic as `<topic>-value` and return its id.

    Args:
        registry: None: the configuration names none.
        topic: The output topic.
        form: The format of its values.
        schema: Their schema.
        at: Where the author wrote the output.

    Raises:
        SinkError: There is no registry, or it refuses; says what the registry said.
    """
    written = format_of(form)
    if registry is None:
        raise without_registry(topic, form, at)
    try:
        return written.register(registry, f"{topic}-value", schema)
    except SinkError as error:
        raise SinkError(error.message, error.at or at, error.hint) from error


def without_registry(topic: str, form: str, at: Location | None) -> SinkError:
    """Return why an output cannot be written whose schema has no registry to go to."""
    return SinkError(
        f"output topic '{topic}' is {format_of(form).traits.title}, and no schema registry is "
        "configured",
        at,
        "set kafka.schemaRegistry, or write output.format: json",
    )


def create_outputs(
    kafka: KafkaSettings,
    topics: Mapping[str, int],
    replication: Replication | None = None,
    patience: int | None = None,
    compacted: Collection[str] = (),
) -> list[str]:
    """Create those of `{topic: partitions}` that do not exist; return what was created.

    Brokers may be set up not to create topics by themselves, and a topic that they do create has
    their default partitions.

    Args:
        kafka: Where they are.
        topics: Topic to partitions.
        replication: How often they are kept; None: as the brokers do by default.
        patience: Milliseconds in which as many brokers must come as there are to be replicas.
        compacted: Topics of which the last record of each key is kept.

    Raises:
        SinkError: A topic cannot be created.
        SourceError: No broker answers.
    """
    known, wanted = describe(kafka, topics), replication or Replication()
    return [
        topic
        for topic, partitions in topics.items()
        if not known[topic].exists
        and wanted.create(
            kafka,
            topic,
            partitions,
            COMPACTED if topic in compacted else None,
            patience=patience,
        )
    ]
