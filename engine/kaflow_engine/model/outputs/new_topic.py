"""What a topic gets that is created because an output writes to it."""

from typing import Annotated

from pydantic import AfterValidator, Field

from kaflow_engine.errors import UnknownName
from kaflow_engine.model.names import refuse
from kaflow_engine.model.spec import Spec

TOPIC_CONFIG = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)
"""Names of the settings that a topic of Kafka has."""


def _known(config: dict[str, str]) -> dict[str, str]:
    for name in config:
        if name not in TOPIC_CONFIG:
            wrong = UnknownName("setting of a topic", name, TOPIC_CONFIG)
            raise refuse(f"names '{name}', which no topic has", wrong.hint or "")
    return config


class NewTopicSpec(Spec):
    """How a topic is created that is not there; one that is there stays as it is."""

    partitions: int | None = Field(default=None, gt=0)
    """None: as many as the topic has that its rows are made of."""
    replication_factor: int | None = Field(default=None, gt=0)
    """None: as the configuration says."""
    config: Annotated[dict[str, str], AfterValidator(_known)] = Field(default={})
    """Settings of the topic, by the names that Kafka gives them."""
