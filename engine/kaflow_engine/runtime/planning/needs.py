"""What a pipeline does with topics, for the permissions that its user needs."""

from kaflow_engine.connectors.kafka.permissions import Need
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.kafka_topics import (
    dead_letter_topic,
    home_cluster,
    kafka_topics,
    letters_apart,
)


def needs_of(spec: PipelineSpec) -> dict[str, list[Need]]:
    """Return what a pipeline does with topics, by cluster; nothing where it needs no broker."""
    letters, own = dead_letter_topic(spec), control_topic(spec.id)
    found: dict[str, list[Need]] = {}
    if letters is None:
        return found
    for name in kafka_topics(spec):
        topic = spec.topic(name)
        need = Need(topic=topic.topic or name, operation="Read", at=spec.place("query"))
        found.setdefault(topic.cluster or "", []).append(need)
    written, home = set[str](), home_cluster(spec)
    for write in spec.writes:
        if write.output.topic is not None:
            cluster = write.output.cluster or ""
            need = Need(topic=write.output.topic, operation="Write", at=spec.place(*write.at))
            found.setdefault(cluster, []).append(need)
            written.add(cluster)
    found.setdefault(home, [])
    if letters_apart(spec) is None:
        need = Need(topic=letters, operation="Write", at=spec.place("dead_letters"))
        found[home].append(need)
    for cluster in sorted({home, *written}):
        found[cluster] += [
            Need(topic=own, operation="Read", at=spec.at),
            Need(topic=own, operation="Write", at=spec.at),
        ]
    return found
