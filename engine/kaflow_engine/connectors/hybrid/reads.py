"""What tasks read of a source in phases: rows of a phase, or records of the topic."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer

from kaflow_engine.connectors.hybrid.avro_values import as_json
from kaflow_engine.connectors.kafka.client import Client, KafkaSettings, open_consumer
from kaflow_engine.connectors.kafka.read import collect, to_records
from kaflow_engine.connectors.sources.contract import RangeRead
from kaflow_engine.errors import SourceAway
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.columns import Column

_PIECE = 50_000
"""Offsets that are in memory at a time."""
_PATIENCE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasesRead:
    """A range of the rows of all phases; see `RangeRead`."""

    source: str
    parts: tuple[tuple[int, RangeRead], ...]
    """What reads each phase, with the offset of its first record."""

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield the records, with their offsets among those of all phases."""
        for first, read in self.parts:
            for batch in read():
                table = pa.Table.from_batches([batch])
                offsets = pc.add(table.column("offset"), first)
                yield from _renamed(table, self.source, table.column("partition"), offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRead:
    """A range of one partition of the topic; see `RangeRead`."""

    source: str
    kafka: KafkaSettings
    topic: str
    partition: int
    shown: int
    """The partition of the source that it is."""
    start: int
    end: int
    avro: tuple[Column, ...] = ()
    """What is read of its records, which are Avro; none: they are JSON."""
    registry: str = field(default="", repr=False)

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield the committed records.

        Raises:
            SourceError: They cannot be read.
        """
        client = open_consumer(self.kafka)
        try:
            for first in range(self.start, self.end, _PIECE):
                found = self._piece(client, first, min(first + _PIECE, self.end))
                partitions = pa.repeat(pa.scalar(self.shown, pa.int32()), found.num_rows)
                yield from _renamed(found, self.source, partitions, found.column("offset"))
        finally:
            client.api.close()

    def _piece(self, client: Client[Consumer], first: int, until: int) -> pa.Table:
        starts, ends = {self.partition: first}, {self.partition: until}
        try:
            messages = collect(
                client, self.topic, starts, ends, _PATIENCE_MS, close=False, exact=True
            )
        except TimeoutError as error:
            raise SourceAway(
                f"partition {self.partition} of topic '{self.topic}' was not read up to "
                f"offset {until} in {_PATIENCE_MS // 1000} s"
            ) from error
        records = to_records(messages)
        if not self.avro:
            return records
        return as_json(records, self.avro, registry_at(self.registry).by_id)


@cache
def registry_at(url: str) -> Registry:
    """Return the registry at an address; a process asks it once for each schema."""
    return Registry(url=url)


def _renamed(
    records: pa.Table,
    source: str,
    partitions: "pa.Array | pa.ChunkedArray",
    offsets: pa.ChunkedArray,
) -> list[pa.RecordBatch]:
    """Return records as those of a source."""
    columns = {name: records.column(name) for name in RECORDS.names}
    names = pa.repeat(pa.scalar(source), records.num_rows)
    changed = {**columns, "topic": names, "partition": partitions, "offset": offsets}
    return pa.table([changed[name] for name in RECORDS.names], schema=RECORDS).to_batches()
