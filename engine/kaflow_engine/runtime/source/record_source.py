"""Exact ranges of what a pipeline reads: of a topic from files up to where its history ends, then
from Kafka; of other sources from themselves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics, OfCluster
from kaflow_engine.connectors.kafka.native.library import library
from kaflow_engine.connectors.kafka.native.reader import TopicRange
from kaflow_engine.connectors.kafka.native.reads import TopicRead
from kaflow_engine.connectors.sources.contract import NamedSource, RangeRead
from kaflow_engine.runtime.jobs.records import InTasks, Records
from kaflow_engine.runtime.source.history import Histories, TopicHistory
from kaflow_engine.runtime.source.history_files import history_frame
from kaflow_engine.runtime.source.inputs import NamedSources
from kaflow_engine.runtime.source.kafka import range_frame
from kaflow_engine.runtime.source.offsets import recreated
from kaflow_engine.state.log.batch_log import Ranges, TopicIds


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSource:
    """Reads ranges, each time the same records."""

    spark: SparkSession
    topics: InputTopics
    pipeline: str
    histories: Histories = field(default_factory=dict[str, TopicHistory])
    topic_ids: TopicIds = field(default_factory=dict[str, str])
    """Of the topics that the histories belong to."""
    named: NamedSources = field(default_factory=dict[str, NamedSource])
    """Sources that are no topics."""

    def of(self, ids: TopicIds) -> "RecordSource":
        """Return the source of topics with these ids: one that was recreated has no history."""
        another = recreated(self.topic_ids, ids)
        left = {topic: each for topic, each in self.histories.items() if topic not in another}
        return replace(self, histories=left)

    @property
    def reads_topics(self) -> bool:
        """Whether tasks read topics themselves, and not Spark's source."""
        return library() is not None

    def of_spark(self, topics: Iterable[str]) -> KafkaSettings | None:
        """Return how Spark's source reaches all that is read; None: tasks read some of it."""
        return None if self.named or self.reads_topics else self.topics.one_cluster(topics)

    def read(self, ranges: Ranges) -> Records:
        """Return the records (columns of RECORDS) of ranges, of which one is not empty."""
        past, rest = split(ranges, self.histories)
        reads = [read for name, ps in ranges.items() if name in self.named
                 for read in reads_of(self.named[name], ps)]  # fmt: skip
        rest = {topic: ps for topic, ps in rest.items() if topic not in self.named}
        frames = [history_frame(self.spark, self.histories[t], ps) for t, ps in past.items()]
        for some in self.topics.by_cluster(rest):
            of_cluster = {topic: rest[name] for topic, name in some.names.items()}
            if self.reads_topics:
                reads += topic_reads(some, of_cluster)
            else:
                frames.append(range_frame(self.spark, some, self.pipeline, of_cluster))
        in_tasks = InTasks(self.spark, tuple(reads))
        if not frames:
            return in_tasks
        return reduce(DataFrame.unionByName, [*frames, in_tasks.frame()] if reads else frames)

    def found(self, ranges: Ranges) -> dict[str, Any]:
        """Return what sources that are no topics must know to read ranges on another machine."""
        named = {name: bounds(ps) for name, ps in ranges.items() if name in self.named}
        return {name: self.named[name].found(*ends) for name, ends in named.items()}

    def know(self, found: Iterable[Mapping[str, Any]]) -> None:
        """Let sources know what they need to read the ranges of batches of another machine.

        Raises:
            Damaged: It is something else than they know, or does not follow it.
        """
        for of_batch in found:
            for name in of_batch.keys() & self.named.keys():
                self.named[name].know(of_batch[name])


def bounds(ranges: Mapping[int, tuple[int, int]]) -> tuple[dict[int, int], dict[int, int]]:
    """Return where ranges start, and where they end."""
    return {p: start for p, (start, _) in ranges.items()}, {p: e for p, (_, e) in ranges.items()}


def reads_of(source: NamedSource, ranges: Mapping[int, tuple[int, int]]) -> Sequence[RangeRead]:
    """Return what reads ranges of a source."""
    return source.reads(*bounds(ranges))


def topic_reads(topics: OfCluster, ranges: Ranges) -> Iterator[RangeRead]:
    """Yield what reads ranges of topics, each that is not empty."""
    for topic, partitions in ranges.items():
        for partition, (start, end) in partitions.items():
            if start < end:
                wanted = (TopicRange(topic, partition, start, end),)
                yield TopicRead(topics.kafka, wanted, topics.names)


def split(ranges: Ranges, histories: Histories) -> tuple[Ranges, Ranges]:
    """Return which ranges lie in files, and which in topics; without those that are empty.

    No range lies in both: batches end where a history does.
    """
    past: Ranges = {}
    rest: Ranges = {}
    for topic, partitions in ranges.items():
        ends: Mapping[int, int] = histories[topic].ends if topic in histories else {}
        for partition, (start, end) in partitions.items():
            if start < end:
                side = past if start < ends.get(partition, 0) else rest
                side.setdefault(topic, {})[partition] = (start, end)
    return past, rest
