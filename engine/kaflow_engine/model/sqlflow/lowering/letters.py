"""Where messages go that cannot be used."""

from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, mapping


def dead_letters(
    said: Said, brokers: tuple[str, ...] | None, mistakes: Mistakes
) -> tuple[Entry, ...]:
    """Return where messages go that cannot be used."""
    policy = said.spec.pipeline.on_error
    path = ("pipeline", "on_error", "dlq")
    if policy.policy != "DLQ" or policy.dlq is None:
        return ()
    at = said.at(*path)
    if policy.dlq.type != "kafka" or policy.dlq.kafka is None:
        mistakes.add(
            f"messages that cannot be used do not go to {policy.dlq.type}",
            at,
            "write dlq: {type: kafka, kafka: {brokers: …, topic: …}}, or leave dlq: out: they "
            "go to <name>.dead_letters, and `kaflow dead-letters` shows them",
        )
        return ()
    if brokers and set(brokers) != set(policy.dlq.kafka.brokers):
        mistakes.add(
            "messages that cannot be used go to other brokers than those that they come from",
            said.at(*path, "kafka", "brokers"),
            "write the brokers of the source",
        )
    topic = entry("topic", policy.dlq.kafka.topic, said.at(*path, "kafka", "topic"))
    return (entry("dead_letters", mapping(at, topic), at),)
