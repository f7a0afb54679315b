"""The topics that a pipeline writes: those that are not there are created."""

from collections.abc import Callable, Mapping

from kaflow_engine.connectors.kafka.clusters.reached import Reached
from kaflow_engine.connectors.kafka.output.topics import create_outputs, new_topics
from kaflow_engine.connectors.kafka.replication import warn_of_single_copies
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.flow.chains.chain import driving_topics
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import topic_sinks
from kaflow_engine.model.names import topic_target
from kaflow_engine.plan.planner.planned import PlannedPipeline


def create_topics(
    planned: PlannedPipeline,
    there: Reached,
    counts: Mapping[str, int],
    patience: int,
    say: Callable[[str], None],
) -> None:
    """Create the topics of one cluster that a pipeline writes and are not there."""
    plan, cluster = planned.plan, there.kafka.cluster
    said = {
        write.output.topic: write.output.new_topic
        for write in planned.spec.writes
        if write.output.topic is not None
        and write.output.new_topic is not None
        and (write.output.cluster or "") == cluster
    }
    own = [sink for sink in topic_sinks(plan) if sink.cluster == cluster]
    compacted = {sink.topic for sink in own if sink.compacted}
    partitions = partitions_of(plan, counts, cluster)
    topics = new_topics(partitions, said, there.replication, compacted)
    for created in create_outputs(there.kafka, topics, patience):
        count = topics[created].partitions
        called = topic_target(created, cluster)
        say(f"created topic '{called}' with {count} partition{'' if count == 1 else 's'}")
    loses = dict.fromkeys(topics, "rows that were delivered are lost")
    forgets = "it is forgotten which rows were delivered, and they are written again"
    warn_of_single_copies(there.kafka, {**loses, control_topic(plan.pipeline): forgets})


def partitions_of(plan: Flow, counts: Mapping[str, int], cluster: str = "") -> dict[str, int]:
    """Return how many partitions the topics get that a plan writes, where they do not exist.

    A topic has as many as the one that its rows are made of: of several the most; that of the dead
    letters as many as any of them. Other sources than topics count as many as the state has.

    Args:
        plan: What writes them.
        counts: The partitions of the topics that it reads.
        cluster: Where they are.
    """
    counts = {topic.name: counts.get(topic.name, plan.partitions) for topic in plan.sources}
    found = {
        sink.topic: max(counts[topic.name] for topic in driving_topics(plan, sink))
        for sink in topic_sinks(plan)
        if sink.cluster == cluster
    }
    if plan.dead_letter_topic and plan.letters is None and plan.cluster == cluster:
        most = max(counts[topic.name] for topic in plan.sources if topic.drives)
        found[plan.dead_letter_topic] = most
    return found
