"""Where topics are that a plan reads."""

from dataclasses import dataclass

from kaflow_engine.model.names import topic_target


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlace:
    """A topic of a cluster."""

    cluster: str
    """Empty: that of topics which name none."""
    topic: str

    def __str__(self) -> str:
        return topic_target(self.topic, self.cluster)
