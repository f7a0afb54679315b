"""Format alignment with output topics that exist: schemas and clean-up."""

from dataclasses import dataclass, replace
from shlex import quote

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.topics import topic_settings
from kaflow_engine.errors import KaflowError, Location, SinkError, SourceError
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.formats import FORMATS

_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTopic:
    """What brokers and registry hold of an output topic."""

    exists: bool = False
    policy: str | None = None
    """Its `cleanup.policy`; None: the brokers do not tell."""
    language: str | None = None
    """Of the newest schema of its values; None: none is registered."""
    compatible: bool = True
    """The registry takes the schema of the output."""
    avro_keys: bool = False
    """A schema of keys is registered."""
    compatible_keys: bool = True
    """The registry takes the schema of the output's keys."""
    untold: str | None = None
    """Why the registry does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is wrong, and what is doubtful."""

    mistakes: tuple[KaflowError, ...] = ()
    notices: tuple[KaflowError, ...] = ()


def look_at_output(
    kafka: KafkaSettings,
    registry: Registry | None,
    sink: TopicSink,
    *,
    exists: bool,
    compare: bool,
) -> OutputTopic:
    """Ask for all that is known of the topic of an output; nothing is changed.

    Args:
        kafka: Where the brokers are.
        registry: None: the configuration names none.
        sink: The output.
        exists: The brokers have its topic.
        compare: Ask whether the schema is compatible, too, and insist on an answer. A start does
            not: it learns this when it registers the schema, and other formats need no registry.

    Raises:
        SourceError: No broker answers, or the registry does not, where it must.
    """
    subject, of_keys = f"{sink.topic}-value", f"{sink.topic}-key"
    latest, keys, untold = None, None, None
    if registry is not None:
        asked = registry if compare else replace(registry, patience=0.0)
        try:
            latest = asked.latest(subject)
            keys = asked.latest(of_keys) if sink.key is not None else None
        except SourceError as error:
            if compare:
                raise
            untold = error.message
    language = format_of(sink.format).traits.language
    schema = sink.avro_schema
    compatible = True
    if registry and latest and schema and language and language == latest.language and compare:
        compatible = registry.takes(subject, schema, language)
    compatible_keys = True
    if registry and keys and sink.key_schema and compare:
        compatible_keys = registry.takes(of_keys, sink.key_schema, "AVRO")
    return OutputTopic(
        exists=exists,
        policy=topic_settings(kafka, sink.topic).get(_POLICY) if exists else None,
        language=latest.language if latest else None,
        compatible=compatible,
        avro_keys=keys is not None and keys.language == "AVRO",
        compatible_keys=compatible_keys,
        untold=untold,
    )


def judge_output(
    sink: TopicSink, topic: OutputTopic, at: Location | None, bootstrap: str
) -> Findings:
    """Return how an output and its topic disagree.

    Args:
        sink: The output.
        topic: What there is.
        at: Where the author wrote the output.
        bootstrap: The brokers, for commands in hints.
    """
    found = (
        _other_format(sink, topic, at),
        _incompatible(sink, topic, at),
        _other_keys(sink, topic, at),
    )
    policy = _other_policy(sink, topic, at, bootstrap) if topic.policy is not None else Findings()
    both = [each for each in found if each is not None]
    untold = () if topic.untold is None else (_untold(sink, topic.untold, at),)
    return Findings(
        mistakes=(*(each for each, wrong in both if wrong), *policy.mistakes),
        notices=(*untold, *(each for each, wrong in both if not wrong), *policy.notices),
    )


def _untold(sink: TopicSink, why: str, at: Location | None) -> KaflowError:
    said = f"whether output topic '{sink.topic}' has values of another format is not known: {why}"
    return SinkError(said, at, "ask again with `kaflow validate --connect`")


def _other_format(
    sink: TopicSink, topic: OutputTopic, at: Location | None
) -> tuple[KaflowError, bool] | None:
    """Return a disagreement about the format of values, and whether it is a mistake."""
    traits = format_of(sink.format).traits
    if topic.language is None or traits.language == topic.language:
        return None
    if traits.language is None and not topic.exists:
        return None  # the subject outlived its topic, and nothing is mixed
    known = {format_of(each).traits.language: each for each in FORMATS}
    name = known.get(topic.language, topic.language)
    title = format_of(name).traits.title if name in FORMATS else name
    return SinkError(
        f"the values of output topic '{sink.topic}' are registered as {title}, in "
        f"'{sink.topic}-value', and this output writes {traits.title}",
        at,
        f"write output.format: {name}, or write to another topic",
    ), not (traits.is_json and topic.language == "JSON")  # they differ by the id in front


def _incompatible(
    sink: TopicSink, topic: OutputTopic, at: Location | None
) -> tuple[KaflowError, bool] | None:
    if topic.compatible:
        return None
    return SinkError(
        f"the schema of output topic '{sink.topic}' is not compatible with the one that is "
        f"registered as '{sink.topic}-value'",
        at,
        "change the query or output.schema so that it stays compatible, or write to another topic",
    ), True


def _other_keys(
    sink: TopicSink, topic: OutputTopic, at: Location | None
) -> tuple[KaflowError, bool] | None:
    """Return a disagreement about keys, and whether it is a mistake."""
    if sink.key_schema is not None and not topic.compatible_keys:
        return SinkError(
            f"the schema of the keys of output topic '{sink.topic}' is not compatible with the one "
            f"that is registered as '{sink.topic}-key'",
            at,
            "change what the key is made of, or write to another topic",
        ), True
    if sink.key_schema is not None or not topic.avro_keys or not topic.exists or sink.takes_bytes:
        return None
    return SinkError(
        f"the keys of output topic '{sink.topic}' are registered as Avro, in '{sink.topic}-key', "
        f"and this output writes {sink.key_format}",
        at,
        "write output.key_format: avro, or write to another topic",
    ), True


def _other_policy(
    sink: TopicSink, topic: OutputTopic, at: Location | None, bootstrap: str
) -> Findings:
    compact = "compact" in (topic.policy or "")
    named = f"output topic '{sink.topic}' has {_POLICY}={topic.policy}"
    if sink.compacted and not compact:
        command = (
            f"kafka-configs.sh --bootstrap-server {quote(bootstrap)} --alter --entity-type topics "
            f"--entity-name {quote(sink.topic)} --add-config {_POLICY}=compact"
        )
        said = f"{named}, and this output is a table: rows that do not change are lost in time"
        return Findings(notices=(SinkError(said, at, command),))
    if sink.compacted or not compact:
        return Findings()
    if sink.key is None and not sink.passes_key:
        said = f"{named}, and this output has no key: brokers refuse its records"
        return Findings(mistakes=(SinkError(said, at, "give it a key, or another topic"),))
    said = f"{named}, and this output is a stream: only the last record of each key stays"
    return Findings(notices=(SinkError(said, at, "write to another topic, if all should stay"),))
