"""Where messages go that cannot be used."""

from dataclasses import dataclass

from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, mapping
from kaflow_engine.model.sqlflow.lowering.sources import Source, kafka_access
from kaflow_engine.model.sqlflow.sink_specs import SinkSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Where they go."""

    entries: tuple[Entry, ...] = ()
    """Keys of a pipeline file."""
    settings: tuple[Setting, ...] = ()


def dead_letters(said: Said, source: Source, sink: SinkSpec, mistakes: Mistakes) -> Letters:
    """Return where messages go that cannot be used.

    Args:
        said: The file.
        source: What it reads.
        sink: What its rows go to.
        mistakes: What is wrong is added.
    """
    policy = said.spec.pipeline.on_error
    path = ("pipeline", "on_error", "dlq")
    if policy.policy != "DLQ" or policy.dlq is None:
        return Letters()
    at, kafka = said.at(*path), policy.dlq.kafka
    if policy.dlq.type != "kafka" or kafka is None:
        mistakes.add(
            f"messages that cannot be used do not go to {policy.dlq.type}",
            at,
            "write dlq: {type: kafka, kafka: {brokers: …, topic: …}}, or leave dlq: out: they "
            "go to <name>.dead_letters, and `kaflow dead-letters` shows them",
        )
        return Letters()
    topic = entry("topic", kafka.topic, said.at(*path, "kafka", "topic"))
    entries = (entry("dead_letters", mapping(at, topic), at),)
    brokers, others, whose = source.brokers, "those that they come from", "source"
    if brokers is None and sink.type == "kafka" and sink.kafka is not None:
        brokers, others, whose = sink.kafka.brokers, "the rows", "sink"
    if brokers is None:
        settings = kafka_access(said, kafka, (*path, "kafka"), mistakes)
        return Letters(entries=entries, settings=settings)
    if brokers and set(brokers) != set(kafka.brokers):
        mistakes.add(
            f"messages that cannot be used go to other brokers than {others}",
            said.at(*path, "kafka", "brokers"),
            f"write the brokers of the {whose}",
        )
    return Letters(entries=entries)
