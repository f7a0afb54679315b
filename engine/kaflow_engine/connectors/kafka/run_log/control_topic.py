"""The pipeline's own topic as brokers keep it: how it is created, and what it must be."""

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.replication import Replication, create_kept
from kaflow_engine.connectors.kafka.topics import set_topic, topic_settings
from kaflow_engine.errors import StateError

_BROKERS_TIME = {"message.timestamp.type": "LogAppendTime"}
"""Records get the time of the broker that takes them: the only way to learn how late it has it."""

TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "600000",
    "segment.bytes": "16777216",
    **_BROKERS_TIME,
}
"""A marker per partition and batch: small segments keep what a start must read small."""


def ensure_control_topic(
    settings: KafkaSettings, topic: str, replication: Replication, timeout: int
) -> None:
    """Create the topic unless it exists, and check that it is compacted with one partition.

    Raises:
        SinkError: It cannot be created.
        SourceError: No broker answers.
        StateError: It exists, but is not fit.
    """
    info = describe(settings, [topic], timeout)[topic]
    if not info.exists and create_kept(settings, topic, TOPIC_SETTINGS, replication, timeout):
        return
    if info.exists and info.partitions != 1:
        raise StateError(
            f"topic '{topic}' has {info.partitions} partitions instead of one",
            hint="it is the pipeline's own; delete it while the pipeline has no state, or give "
            "the pipeline another id",
        )
    found = topic_settings(settings, topic, timeout)
    policy = found.get("cleanup.policy")
    if policy is not None and policy != "compact":
        raise StateError(
            f"topic '{topic}' has cleanup.policy '{policy}' and would forget deliveries",
            hint="set its cleanup.policy to 'compact'",
        )
    if found and not _BROKERS_TIME.items() <= found.items():  # as earlier versions made it
        set_topic(settings, topic, _BROKERS_TIME, timeout)
