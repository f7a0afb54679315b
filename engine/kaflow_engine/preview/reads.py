"""What a preview reads: topics and other sources, from where a run would begin; all of it by
looking, so that no position, journal or folder is changed."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from confluent_kafka import Consumer

from kaflow_engine.connectors.kafka.client import Client, open_consumer
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.connectors.kafka.read import collect, to_records
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.config import Config
from kaflow_engine.operators.rows.reports import bytes_of
from kaflow_engine.runtime.planning.columns import connection_of_source
from kaflow_engine.runtime.source.end_offsets import EndOffsets
from kaflow_engine.runtime.source.inputs import Inputs, open_sources
from kaflow_engine.runtime.source.offsets import next_cut, size_of
from kaflow_engine.state.log.batch_log import Offsets
from kaflow_engine.state.storage.store import LocalStore

_MOST_RECORDS = 10_000
_MOST_BYTES = 32 << 20
_TIMEOUT = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The records of one batch."""

    records: pa.Table
    """Schema RECORDS."""
    ends: Offsets
    """How far each partition has been read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The inputs of a plan."""

    inputs: Inputs
    counts: Mapping[str, int]
    """Topic or source to its partitions."""
    _ends: EndOffsets
    _clients: dict[str, Client[Consumer]] = field(default_factory=dict[str, Client[Consumer]])
    """By cluster."""

    def latest(self) -> Offsets:
        """Return where everything ends now.

        Raises:
            SourceError: A topic or source does not answer.
        """
        return self._ends.ask({name: range(count) for name, count in self.counts.items()})

    def ended(self) -> bool:
        """Tell whether nothing comes behind what `latest` says, for good."""
        return self.inputs.ended(self.counts)

    def take(self, at: Offsets, goal: Offsets) -> Taken:
        """Return the next records on the way to a goal, as many as make a batch.

        Raises:
            SourceError: They cannot be read.
        """
        ranges = next_cut(at, goal, _MOST_RECORDS)
        if not size_of(ranges):
            return Taken(records=RECORDS.empty_table(), ends=at)
        tables = [RECORDS.empty_table()]
        ends, left = {topic: dict(ps) for topic, ps in at.items()}, _MOST_BYTES
        for name, parts in ranges.items():
            wanted = {p: (first, end) for p, (first, end) in parts.items() if first < end}
            if wanted and left > 0:
                table, reached = self._read(name, wanted, left)
                tables.append(table)
                ends[name] = {**ends.get(name, {}), **reached}
                left -= bytes_of(table)
        return Taken(records=pa.concat_tables(tables), ends=ends)

    def _read(
        self, name: str, wanted: Mapping[int, tuple[int, int]], most: int
    ) -> tuple[pa.Table, Mapping[int, int]]:
        starts = {p: first for p, (first, _) in wanted.items()}
        ends = {p: end for p, (_, end) in wanted.items()}
        if name in self.inputs.named:
            return self.inputs.named[name].read(starts, ends), ends
        topic = self.inputs.topics.place(name).topic
        messages = collect(
            self._client(name), topic, starts, ends, _TIMEOUT, close=False, most_bytes=most
        )
        found = to_records(sorted(messages, key=lambda m: (m.partition(), m.offset())))
        called = pa.repeat(pa.scalar(name), found.num_rows)
        found = found.set_column(found.column_names.index("topic"), RECORDS.field("topic"), called)
        if bytes_of(found) < most:
            return found, ends
        reached = dict(starts)
        for place in found.select(["partition", "offset"]).to_pylist():
            reached[place["partition"]] = place["offset"] + 1
        return found, reached

    def _client(self, name: str) -> Client[Consumer]:
        cluster = self.inputs.topics.place(name).cluster
        if cluster not in self._clients:
            self._clients[cluster] = open_consumer(self.inputs.topics.kafka(name))
        return self._clients[cluster]

    def close(self) -> None:
        """Let go of the brokers."""
        for client in self._clients.values():
            client.api.close()


@contextmanager
def open_reads(plan: Flow, config: Config) -> Generator[Reads]:
    """Open what a plan reads, to the end of the block.

    What sources write down elsewhere goes into a folder that is removed. A source that cannot be
    read twice is read from its journal: what the run on this machine has been given.

    Raises:
        SourceError: A topic does not exist, or something does not answer.
    """
    topics = InputTopics.of(config.kafka, plan.sources)
    root = Path(config.state.rocksdb.path).absolute()
    with TemporaryDirectory(prefix="kaflow-preview-", ignore_cleanup_errors=True) as folder:
        connection = partial(connection_of_source, config)
        inputs = Inputs(topics, open_sources(plan, LocalStore(Path(folder)), root, connection))
        counts = inputs.partitions(plan, new=True)
        reads = Reads(inputs=inputs, counts=counts, _ends=EndOffsets(topics, named=inputs.named))
        try:
            yield reads
        finally:
            reads.close()
