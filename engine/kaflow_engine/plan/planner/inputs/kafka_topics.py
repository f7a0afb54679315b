"""Which topics of Kafka a pipeline uses, whether it uses any, and in which clusters they are."""

from collections.abc import Iterator
from typing import Literal, assert_never

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.sinks import ConnectorSink, letter_table
from kaflow_engine.model.config import Config
from kaflow_engine.model.names import topic_target
from kaflow_engine.model.sources.hybrid_specs import HybridSourceSpec
from kaflow_engine.model.spec import Path
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


def clusters_of(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the clusters that have topics which a pipeline names, in order.

    Raises:
        ModelError: As `pipeline_topics`.
    """
    read = {spec.topic(name).cluster or "" for name in kafka_topics(spec)}
    written = {w.output.cluster or "" for w in spec.writes if w.output.topic is not None}
    return tuple(sorted(read | written))


def home_cluster(spec: PipelineSpec) -> str:
    """Return where a pipeline's runs are known, and its dead letters go.

    Raises:
        ModelError: As `pipeline_topics`.
    """
    if spec.dead_letters.cluster is not None:
        return spec.dead_letters.cluster
    used = clusters_of(spec)
    return used[0] if len(used) == 1 else ""


def dead_letter_target(spec: PipelineSpec) -> str | None:
    """Return what the topic of dead letters would be called among outputs; None: there is none.

    Raises:
        ModelError: As `pipeline_topics`.
    """
    topic = dead_letter_topic(spec)
    if topic is None or letters_apart(spec) is not None:
        return None
    return topic_target(topic, home_cluster(spec))


def letters_apart(spec: PipelineSpec) -> ConnectorSink | Literal["files"] | None:
    """Return where dead letters go that do not go to their topic, as the author says it."""
    said = spec.dead_letters
    match said.type:
        case "postgres":
            return letter_table(said.type, said.connection or "default", said.table or "")
        case "files":
            return "files"
        case "kafka" | None:
            return None
        case _:
            assert_never(said.type)


def wrong_letters(spec: PipelineSpec, config: Config) -> Iterator[ModelError]:
    """Yield an error where dead letters go to a connection that the configuration does not have."""
    said = spec.dead_letters
    name = said.connection or "default"
    if said.type == "postgres" and name not in config.postgres.connections:
        at = spec.place("dead_letters", "connection")
        error = UnknownName("connection", name, config.postgres.connections, at)
        needed = f"postgres: {{connections: {{{name}: {{url: postgresql://…}}}}}}"
        error.hint = error.hint or f"add {needed} to the configuration"
        yield error
    if said.type == "kafka" and dead_letter_topic(spec) is None:
        yield ModelError(
            "the pipeline uses no topics, so its dead letters have none of their own",
            spec.place("dead_letters", "type"),
            "add topic: <topic>, and it needs a broker; or write type: files",
        )


def wrong_clusters(spec: PipelineSpec, config: Config) -> Iterator[ModelError]:
    """Yield what is wrong with the clusters that a pipeline names.

    Args:
        spec: What the author wrote.
        config: Which clusters it has.
    """
    for path, cluster in _named(spec):
        if cluster not in config.kafka.clusters:
            at = spec.place(*path, "cluster")
            error = UnknownName("cluster", cluster, config.kafka.clusters, at)
            said = f"kafka: {{clusters: {{{cluster}: {{brokers: host:9092}}}}}}"
            error.hint = error.hint or f"add {said} to the configuration"
            yield error
    yield from _two_names(spec)
    yield from _no_home(spec)


def _named(spec: PipelineSpec) -> Iterator[tuple[Path, str]]:
    for name, topic in spec.topics.items():
        if topic.cluster is not None:
            yield ("topics", name), topic.cluster
    for name, source in spec.sources.items():
        if isinstance(source, HybridSourceSpec) and source.cluster is not None:
            yield ("sources", name), source.cluster
    for write in spec.writes:
        if write.output.cluster is not None:
            yield write.at, write.output.cluster
    if spec.dead_letters.cluster is not None:
        yield ("dead_letters",), spec.dead_letters.cluster


def _two_names(spec: PipelineSpec) -> Iterator[ModelError]:
    """A topic is read once: two names of it would be read as two."""
    try:
        plain = [name for name in kafka_topics(spec) if name not in spec.topics]
    except ModelError:
        plain = []  # it is reported elsewhere
    first: dict[str, str] = {}
    for name in (*plain, *spec.topics):
        target = spec.target_of(name)
        other = first.setdefault(target, name)
        if other != name:
            yield ModelError(
                f"'{name}' is topic '{target}', which is called '{other}' already",
                spec.place("topics", name, "topic"),
                f"read it in another way by relations: {{{name}: {{topic: {other}}}}}",
            )


def _no_home(spec: PipelineSpec) -> Iterator[ModelError]:
    """Where the runs of a pipeline are known must not depend on which topics it has today."""
    try:
        used = clusters_of(spec)
    except ModelError:
        return  # it is reported elsewhere
    if len(used) > 1 and "" not in used and spec.dead_letters.cluster is None:
        named = ", ".join(f"'{each}'" for each in used)
        yield ModelError(
            f"which of the clusters {named} knows the runs of the pipeline, and has its dead "
            "letters?",
            spec.at,
            f"add dead_letters: {{cluster: {used[0]}}}, and leave it so",
        )
