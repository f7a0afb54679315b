"""Ranges of topics as tasks read them themselves, in place of Spark's Kafka source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa

from kaflow_engine.connectors.kafka.client import KafkaSettings, open_consumer
from kaflow_engine.connectors.kafka.native.library import library
from kaflow_engine.connectors.kafka.native.reader import EXACT, TopicRange, reader_of, silent
from kaflow_engine.connectors.kafka.read import collect, to_records
from kaflow_engine.connectors.sources.contract import RangeRead

_TIMEOUT = 30_000


@dataclass(frozen=True, slots=True)
class TopicRead:
    """Ranges of topics of one cluster; see `RangeRead`."""

    kafka: KafkaSettings
    ranges: tuple[TopicRange, ...]
    names: Mapping[str, str]
    """Topic to what the pipeline calls it."""

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield their records, range by range."""
        found: list[list[pa.RecordBatch]] = [[] for _ in self.ranges]
        if library() is None:  # on a host that lacks what the driver has
            for each, batches in zip(self.ranges, found, strict=True):
                batches += _by_python(self.kafka, each).to_batches()
        else:
            for number, batch in reader_of(self.kafka).read(self.ranges, _TIMEOUT):
                found[number].append(batch)
        for each, batches in zip(self.ranges, found, strict=True):
            name = self.names.get(each.topic, each.topic)
            for batch in batches:
                yield batch if name == each.topic else _called(batch, name)

    def with_ranges_of(self, other: "TopicRead") -> "TopicRead":
        """Return one that reads the ranges of both."""
        return replace(self, ranges=self.ranges + other.ranges, names={**self.names, **other.names})


def together(reads: Sequence[RangeRead]) -> Sequence[RangeRead]:
    """Return what one task reads ranges with: those of a cluster at once."""
    by_cluster: dict[KafkaSettings, list[TopicRead]] = {}
    for read in reads:
        if isinstance(read, TopicRead):
            by_cluster.setdefault(read.kafka, []).append(read)
    others = [read for read in reads if not isinstance(read, TopicRead)]
    return [*(reduce(TopicRead.with_ranges_of, some) for some in by_cluster.values()), *others]


def _by_python(kafka: KafkaSettings, wanted: TopicRange) -> pa.Table:
    client = open_consumer(kafka, **EXACT)
    bounds = {wanted.partition: wanted.start}, {wanted.partition: wanted.end}
    try:
        return to_records(collect(client, wanted.topic, *bounds, _TIMEOUT, exact=True))
    except TimeoutError:
        raise silent([wanted], _TIMEOUT) from None


def _called(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    return batch.set_column(0, batch.schema.field(0), pa.repeat(pa.scalar(name), batch.num_rows))
