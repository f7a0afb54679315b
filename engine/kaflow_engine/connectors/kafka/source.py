"""A Kafka topic as a source: partitions, offsets, and exact ranges of committed records."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.connectors.kafka.admin import offsets, require
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.read import read_ranges
from kaflow_engine.connectors.sources.contract import StartPolicy


@dataclass(frozen=True, slots=True)
class TopicSource:
    """Never ends, and gives the same records of a range as long as the topic keeps them."""

    kafka: KafkaSettings
    topic: str
    bounded: bool = False

    def partitions(self) -> range:
        """Return all partitions."""
        return range(require(self.kafka, [self.topic])[self.topic])

    def latest(self) -> Mapping[int, int]:
        """Return the ends behind committed records."""
        return self._offsets("latest")

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return the offsets of a policy; those of a time come from Kafka's timestamps."""
        found = self._offsets(policy if isinstance(policy, str) else max(0, policy))
        if all(at >= 0 for at in found.values()):
            return found
        end = self.latest()
        return {p: end[p] if at < 0 else at for p, at in found.items()}

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        """Return the committed records of ranges."""
        return read_ranges(self.kafka, self.topic, start, end)

    def _offsets(self, when: StartPolicy) -> Mapping[int, int]:
        counts = {self.topic: len(self.partitions())}
        return offsets(self.kafka, counts, when)[self.topic]
