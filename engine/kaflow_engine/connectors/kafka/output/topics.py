"""Makes ready what a pipeline writes to: its topics, and the schema of their values."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters.reached import registry_key
from kaflow_engine.connectors.kafka.replication import Replication
from kaflow_engine.errors import Location, SinkError
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.outputs.new_topic import NewTopicSpec

COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the schemas of an output topic's values, or of its keys, are registered under."""

    topic: str
    part: Literal["value", "key"]
    format: str

    @property
    def name(self) -> str:
        """As the registry knows it."""
        return f"{self.topic}-{self.part}"


def subjects(sink: TopicSink) -> Iterator[tuple[Subject, str]]:
    """Yield the subjects of an output that has schemas, with these."""
    if sink.avro_schema is not None:
        yield Subject(topic=sink.topic, part="value", format=sink.format), sink.avro_schema
    if sink.key_schema is not None:
        yield Subject(topic=sink.topic, part="key", format="avro"), sink.key_schema


def register_output(
    registry: Registry | None,
    subject: Subject,
    schema: str,
    at: Location | None = None,
    cluster: str = "",
) -> int:
    """Register a schema of an output topic and return its id.

    Args:
        registry: None: the configuration names none.
        subject: Of the values or of the keys.
        schema: Their schema.
        at: Where the author wrote the output.
        cluster: Where the topic is.

    Raises:
        SinkError: There is no registry, or it refuses; says what the registry said.
    """
    written = format_of(subject.format)
    if registry is None:
        raise without_registry(subject, at, cluster)
    try:
        return written.register(registry, subject.name, schema)
    except SinkError as error:
        raise SinkError(error.message, error.at or at, error.hint) from error


def without_registry(subject: Subject, at: Location | None, cluster: str = "") -> SinkError:
    """Return why an output cannot be written whose schema has no registry to go to."""
    title = format_of(subject.format).traits.title
    key = subject.part == "key"
    topic = f"output topic '{subject.topic}'"
    what = f"the keys of {topic} are" if key else f"{topic} is"
    return SinkError(
        f"{what} {title}, and no schema registry is configured",
        at,
        f"set {registry_key(cluster)}, or write output.{'key_format' if key else 'format'}: json",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """What a topic gets that is created."""

    partitions: int
    replication: Replication = field(default_factory=Replication)
    """How often it is kept."""
    config: Mapping[str, str] = field(default_factory=dict[str, str])


def new_topics(
    partitions: Mapping[str, int],
    said: Mapping[str, NewTopicSpec],
    replication: Replication,
    compacted: Collection[str] = (),
) -> dict[str, NewTopic]:
    """Return what topics get that a pipeline writes, where they do not exist.

    Args:
        partitions: Of all of them, where nothing else is said.
        said: What the author says of some of them.
        replication: What the configuration says.
        compacted: Topics of which the last record of each key is kept.
    """
    found: dict[str, NewTopic] = {}
    for topic, count in partitions.items():
        own = said.get(topic, NewTopicSpec())
        kept, factor = replication, own.replication_factor
        if factor is not None:  # more replicas in sync than there are would keep writers away
            in_sync = None if kept.in_sync is None else min(kept.in_sync, factor)
            kept = Replication(factor=factor, in_sync=in_sync)
        default = COMPACTED if topic in compacted else {}
        found[topic] = NewTopic(
            partitions=own.partitions or count, replication=kept, config={**default, **own.config}
        )
    return found


def create_outputs(
    kafka: KafkaSettings, topics: Mapping[str, NewTopic], patience: int | None = None
) -> list[str]:
    """Create those topics that do not exist; return what was created.

    Brokers may be set up not to create topics by themselves, and a topic that they do create has
    their default partitions.

    Args:
        kafka: Where they are.
        topics: What they get, by name.
        patience: Milliseconds in which as many brokers must come as there are to be replicas.

    Raises:
        SinkError: A topic cannot be created.
        SourceError: No broker answers.
    """
    known = describe(kafka, topics)
    return [
        topic
        for topic, new in topics.items()
        if not known[topic].exists
        and new.replication.create(kafka, topic, new.partitions, new.config, patience=patience)
    ]
