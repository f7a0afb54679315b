"""The size limit of a batch: records, and bytes as far as they can be estimated."""

from collections.abc import Callable, Mapping

from kaflow_engine.connectors.kafka.read import read_ranges
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.model.config import Config
from kaflow_engine.operators.rows.reports import bytes_of
from kaflow_engine.runtime.jobs.executor import SMALL
from kaflow_engine.runtime.source.offsets import size_of
from kaflow_engine.runtime.source.record_source import RecordSource, split
from kaflow_engine.state.log.batch_log import Ranges

USUAL = 2**20
"""Bytes of the largest record that brokers take unless they are told otherwise."""
_GUESS = 1024
"""Bytes of a record of which nothing is known: it lies in a file."""
_SAMPLED_PARTITIONS = 4
_SAMPLED_RECORDS = 10

_RECORDS = 200_000
_MANY = 400_000
"""Records where rows are grouped, as a batch reads and writes a group once, however many it has;
and where Spark reads topics, as it plans a query for each batch."""

Sample = Callable[[str, Ranges], int]
"""Takes a topic and ranges of it; returns the bytes of the records."""


class BatchLimit:
    """Cuts batches by what records of each topic weighed lately.

    Args:
        records: Most offsets of a batch.
        size: Most bytes of a batch.
        sample: Weighs the first records of a topic that nothing is known of.
    """

    def __init__(self, records: int, size: int, sample: Sample) -> None:
        self.records, self._size, self._sample = records, size, sample
        self._begun = False
        self._seen: dict[str, tuple[float, float]] = {}  # bytes and offsets, older ones count less

    @property
    def few(self) -> int:
        """How many records are not too large together, unless brokers take very large ones."""
        return self._size // USUAL

    def took(self, ranges: Ranges, sizes: Mapping[str, int]) -> None:
        """Take note of what a batch has read: bytes by topic."""
        self._begun = True
        for topic, size in sizes.items():
            before = self._seen.get(topic, (0.0, 0.0))
            count = size_of({topic: ranges.get(topic, {})})
            self._seen[topic] = before[0] / 2 + size, before[1] / 2 + count

    def most(self, ranges: Ranges) -> int:
        """Return how many offsets of ranges one batch may take; the first of a run only what one
        task does, so that its rows are soon there."""
        count, share = size_of(ranges), self._share(ranges)
        most = self.records if self._begun else min(self.records, SMALL)
        return most if share <= 1 else min(most, max(1, int(count / share)))

    def fits(self, ranges: Ranges) -> bool:
        """Tell whether ranges do not hold too many bytes for one batch."""
        return self._share(ranges) <= 1

    def _share(self, ranges: Ranges) -> float:
        """Return the bytes of ranges for each byte that a batch may have."""
        if size_of(ranges) <= self.few:
            return 0
        sizes = (self._weight(t, ranges) * size_of({t: parts}) for t, parts in ranges.items())
        return sum(sizes) / self._size

    def _weight(self, topic: str, ranges: Ranges) -> float:
        """Return the bytes of an offset of a topic."""
        if topic not in self._seen:
            first = {topic: _first(ranges[topic])}
            self._seen[topic] = self._sample(topic, first), size_of(first)
        size, count = self._seen[topic]
        return size / count if size else _GUESS


def limit_of(config: Config, plan: Flow, source: RecordSource) -> BatchLimit:
    """Return the limit of the batches of a flow."""
    grouped = any(isinstance(operator, Aggregate) for operator in plan.operators)
    usual = _RECORDS if source.reads_topics and not grouped else _MANY
    return BatchLimit(config.max_records or usual, config.most_bytes, weigher(source))


def weigher(source: RecordSource) -> Sample:
    """Return what weighs records of topics; those in files weigh nothing.

    Raises, when called:
        SourceError: The topic cannot be read.
    """

    def weigh(topic: str, ranges: Ranges) -> int:
        bounds = split(ranges, source.histories)[1].get(topic, {})
        starts = {partition: start for partition, (start, _) in bounds.items()}
        ends = {partition: end for partition, (_, end) in bounds.items()}
        if topic in source.named:
            return bytes_of(source.named[topic].read(starts, ends)) if starts else 0
        topics = source.topics
        return bytes_of(read_ranges(topics.kafka(topic), topics.place(topic).topic, starts, ends))

    return weigh


def _first(parts: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return the first records of some partitions."""
    filled = [(p, start, end) for p, (start, end) in sorted(parts.items()) if start < end]
    return {
        p: (start, min(end, start + _SAMPLED_RECORDS))
        for p, start, end in filled[:_SAMPLED_PARTITIONS]
    }
