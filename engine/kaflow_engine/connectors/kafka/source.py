"""A Kafka topic as a source: partitions, offsets, and exact ranges of committed records."""

from collections.abc import Mapping
from functools import cached_property

import pyarrow as pa
from confluent_kafka.admin import AdminClient

from kaflow_engine.connectors.kafka.admin import offsets, require
from kaflow_engine.connectors.kafka.client import Client, KafkaSettings, open_admin
from kaflow_engine.connectors.kafka.read import read_ranges
from kaflow_engine.connectors.sources.contract import StartPolicy


class TopicSource:
    """Never ends, and gives the same records of a range as long as the topic keeps them.

    Ends are asked for often: one client stays open for that, and how many partitions there are is
    asked again by `partitions` alone.

    Args:
        kafka: How the brokers are reached.
        topic: Its name.
    """

    bounded = False

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        self._count: int | None = None

    def partitions(self) -> range:
        """Return all partitions."""
        self._count = require(self._kafka, [self._topic], client=self._client)[self._topic]
        return range(self._count)

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
        return read_ranges(self._kafka, self._topic, start, end)

    def _offsets(self, when: StartPolicy) -> Mapping[int, int]:
        count = len(self.partitions()) if self._count is None else self._count
        asked = {self._topic: count}
        return offsets(self._kafka, asked, when, client=self._client)[self._topic]

    @cached_property
    def _client(self) -> Client[AdminClient]:
        return open_admin(self._kafka)
