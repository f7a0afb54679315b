"""Finds the columns of input topics: declared, in the schema registry, or in a sample."""

import time
from collections.abc import Callable, Mapping, Sequence

from kaflow_engine.connectors.kafka.admin import MissingTopic, describe, offsets, require
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_consumer
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics, OfCluster, clusters_of
from kaflow_engine.connectors.kafka.clusters.reached import registry_key, registry_of
from kaflow_engine.connectors.kafka.read import collect
from kaflow_engine.errors import Location, SourceError, UnknownName
from kaflow_engine.flow.origins.topics import TopicPlace
from kaflow_engine.formats.contract import Evidence, format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.sources.schema_first import SchemaFirst
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.types.bind import check_types, normal_type

SAMPLE = 500
"""Records of each partition that are looked at, oldest first."""

Columns = tuple[Column, ...]

_POLL_S = 0.5
_TIMEOUT = 10_000


def resolve_schemas(
    spec: PipelineSpec,
    config: Config,
    topics: Sequence[str],
    *,
    declared: Callable[[str], Columns | None] = lambda topic: None,
    wait_ms: int = 60_000,
    on_wait: Callable[[str], None] = lambda text: None,
    stopped: Callable[[], bool] = lambda: False,
    endless: bool = False,
) -> dict[str, Columns]:
    """Return the columns of each topic, from the first place that has them.

    Places are the file, then what the format looks at: the registry's latest `<topic>-value`, or
    a sample.

    Args:
        spec: The pipeline that reads the topics.
        config: Where brokers and registry are.
        topics: Their names.
        declared: Columns that the file gives, with types as DuckDB writes them.
        wait_ms: How long to wait for what is not there yet: a first record, a first schema.
        on_wait: Called once for each topic that is waited for.
        stopped: Asked while waiting whether to give up early.
        endless: Wait for topics without end whose file says `wait_for`.

    Raises:
        SourceError: A topic does not exist, its columns cannot be found in time, or there is no
            registry for its keys.
    """
    _require_registry(spec, config, topics)
    given = {topic: declared(topic) for topic in topics}
    found = {topic: columns for topic, columns in given.items() if columns is not None}
    missing = [topic for topic in given if topic not in found]
    if not missing:
        return found
    inputs = input_topics(spec, config)
    partitions = require_topics(inputs, missing, {topic: _place(spec, topic) for topic in missing})
    deadline = None
    announced: set[str] = set()
    while True:
        for topic in missing:
            columns = _look(spec, config, inputs, topic, partitions[topic])
            if columns:
                found[topic] = with_types(spec, topic, columns)
        missing = [topic for topic in missing if topic not in found]
        if not missing:
            return {topic: found[topic] for topic in given}
        patient = endless and all(spec.topic(topic).wait_for for topic in missing)
        if deadline is None:  # a first look may take long, and nothing waited yet
            deadline = time.monotonic() + wait_ms / 1000
        if (time.monotonic() >= deadline and not patient) or stopped():
            raise _unknown(spec, config, missing[0])
        for topic in missing:
            if topic not in announced:
                announced.add(topic)
                on_wait(_waiting(spec, config, topic))
        time.sleep(_POLL_S)


def with_types(spec: PipelineSpec, topic: str, columns: Columns) -> Columns:
    """Return columns with the types that the file says of some of them.

    Raises:
        UnknownName: It says one of a column that there is not.
        ModelError: One is no type.
    """
    said = spec.topic(topic).types
    places = {name: spec.place("topics", topic, "types", name) for name in said}
    raise_all(check_types(said, places))
    names = {column.name.lower(): column.name for column in columns}
    for name in said:
        if name.lower() not in names:
            raise UnknownName("column", name, names.values(), places[name])
    types = {name.lower(): normal_type(kind) for name, kind in said.items()}
    return tuple(Column(c.name, types.get(c.name.lower(), c.type)) for c in columns)


def _require_registry(spec: PipelineSpec, config: Config, topics: Sequence[str]) -> None:
    for topic in topics:
        cluster = spec.topic(topic).cluster or ""
        if spec.topic(topic).key_format == "avro" and registry_of(config, cluster) is None:
            raise SourceError(
                f"the keys of topic '{topic}' are Avro, and no schema registry is configured",
                spec.place("topics", topic, "key_format"),
                f"set {registry_key(cluster)}",
            )


def require_topics(
    inputs: InputTopics, topics: Sequence[str], places: Mapping[str, Location]
) -> dict[str, int]:
    """Return the partitions of topics that must exist.

    Args:
        inputs: Where they are.
        topics: What the pipeline calls them.
        places: Where it reads them.

    Raises:
        SourceError: One does not; says where it is read, the nearest name, how to create it.
    """
    found: dict[str, int] = {}
    for some in inputs.by_cluster(topics):
        counts = _required(some, places)
        found |= {some.names[topic]: count for topic, count in counts.items()}
    return found


def _required(some: OfCluster, places: Mapping[str, Location]) -> dict[str, int]:
    kafka, topics = some.kafka, some.names
    absent = [topic for topic, info in describe(kafka, topics).items() if not info.exists]
    if not absent:
        return require(kafka, topics)
    try:
        return require(kafka, absent)
    except MissingTopic as error:
        create = (
            f"kafka-topics.sh --bootstrap-server {kafka.bootstrap} --create --topic {absent[0]}"
        )
        hint = f"{error.hint}\n        to create it: {create}" if error.hint else create
        raise MissingTopic(error.message, places.get(topics[absent[0]]), hint) from error


def input_topics(spec: PipelineSpec, config: Config) -> InputTopics:
    """Return where the topics are that a pipeline names."""
    places = {
        name: TopicPlace(cluster=said.cluster or "", topic=said.topic or name)
        for name, said in spec.topics.items()
    }
    return InputTopics(clusters_of(config.kafka), places)


def _look(
    spec: PipelineSpec, config: Config, inputs: InputTopics, topic: str, partitions: int
) -> Columns | None:
    form, place = format_of(topic_format(spec, config, topic)), inputs.place(topic)

    def newest() -> str | None:
        registry = registry_of(config, place.cluster)
        if registry is None:
            raise SourceError(
                f"topic '{topic}' is {form.traits.title}, and no schema registry is configured",
                _place(spec, topic),
                f"set {registry_key(place.cluster)}, or declare topics.{topic}.format: json",
            )
        latest = registry.latest(f"{place.topic}-value")
        return latest.schema if latest else None

    def first() -> list[bytes]:
        if spec.schema_first is not None:
            raise _no_schema(spec.schema_first, topic)
        return sample(inputs.kafka(topic), place.topic, partitions)

    return form.columns(Evidence(sample=first, schema=newest))


def sample(kafka: KafkaSettings, topic: str, partitions: int, limit: int = SAMPLE) -> list[bytes]:
    """Return the values of the first `limit` records of each partition, without null values.

    Raises:
        SourceError: The topic cannot be read.
    """
    counts = {topic: partitions}
    first = offsets(kafka, counts, "earliest")[topic]
    last = offsets(kafka, counts, "latest")[topic]
    filled = [partition for partition in first if first[partition] < last[partition]]
    if not filled:
        return []
    client = open_consumer(kafka)
    values: list[bytes] = []
    try:
        for p in filled:
            messages = collect(
                client, topic, {p: first[p]}, {p: last[p]}, _TIMEOUT, limit, close=False
            )
            values += [value for message in messages if (value := message.value()) is not None]
    finally:
        client.api.close()
    return values


def _waiting(spec: PipelineSpec, config: Config, topic: str) -> str:
    declare = f"declare topics.{topic}.columns to start without"
    if not format_of(topic_format(spec, config, topic)).traits.registered:
        return f"waiting for a first record of topic '{topic}' to learn its columns; {declare}"
    return f"waiting for a schema '{_subject(spec, topic)}' in the schema registry; {declare}"


def _unknown(spec: PipelineSpec, config: Config, topic: str) -> SourceError:
    declare = f"declare topics.{topic}.columns"
    traits = format_of(topic_format(spec, config, topic)).traits
    if not traits.registered:
        return SourceError(
            f"topic '{topic}' holds no {traits.value} yet, so its columns are not known",
            _place(spec, topic),
            f"{declare}, or start again when it has a first record",
        )
    return SourceError(
        f"the schema registry has no subject '{_subject(spec, topic)}', so the columns of topic "
        f"'{topic}' are not known",
        _place(spec, topic),
        f"{declare}, or start again when its producer has registered a schema",
    )


def _no_schema(first: SchemaFirst, topic: str) -> SourceError:
    read, hint = first.topics[topic], first.way_out.format(topic=topic)
    if read.field is None:
        return SourceError(f"the schema of topic '{topic}' is not known", read.at, hint)
    return SourceError(
        f"the schema of topic '{topic}' is not known, and so is not its field '{read.field}'",
        read.at,
        hint,
    )


def _subject(spec: PipelineSpec, topic: str) -> str:
    return f"{spec.topic(topic).topic or topic}-value"


def _place(spec: PipelineSpec, topic: str) -> Location:
    return spec.place("topics", topic) if topic in spec.topics else spec.place("query")
