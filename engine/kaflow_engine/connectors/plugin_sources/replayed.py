"""A source of a plugin that gives the same rows for the same range."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from kaflow_engine.connectors.plugin_sources.values import value_of
from kaflow_engine.connectors.sources.contract import StartPolicy
from kaflow_engine.connectors.sources.plugin_contract import ReplayedSource, TimedRow
from kaflow_engine.connectors.sources.records import record_batch, table_of
from kaflow_engine.errors import SourceError, SourceUnfit
from kaflow_engine.plugins.raised import OF_SOURCES, plugin_errors

_CHUNK = 16_384
"""Records of one Arrow batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRead:
    """A range of records; see `RangeRead`."""

    name: str
    kind: str
    source: ReplayedSource
    partition: int
    start: int
    end: int

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Raises:
            SourceAway: They cannot be read now.
            SourceUnfit: They cannot be read, or are not as many as offsets.
        """
        at = self.start
        with plugin_errors(OF_SOURCES, f"plugin '{self.kind}'"):
            rows = iter(self.source.rows(self.partition, self.start, self.end))
            while some := list(islice(rows, min(_CHUNK, self.end - at + 1))):
                if at + len(some) > self.end:
                    raise self._wrong("more rows than")
                yield self._records(at, some)
                at += len(some)
        if at < self.end:
            raise self._wrong(f"{at - self.start} rows instead of")

    def _records(self, first: int, rows: Sequence[TimedRow]) -> pa.RecordBatch:
        called = f"plugin '{self.kind}'"
        values = [value_of(each.row, called) for each in rows]
        stamps = [each.timestamp for each in rows]
        return record_batch(self.name, first, values, stamps, self.kind, partition=self.partition)

    def _wrong(self, what: str) -> SourceError:
        return SourceUnfit(
            f"plugin '{self.kind}' gave {what} the {self.end - self.start} of partition "
            f"{self.partition} from offset {self.start} of source '{self.name}'",
            hint="correct the plugin: each offset is one row, the same each time",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSource:
    """Records of a plugin."""

    name: str
    kind: str
    source: ReplayedSource
    finite: bool
    """Whether its ends are so for good."""

    @property
    def bounded(self) -> bool:
        """Whether nothing comes behind its ends."""
        return self.finite

    def partitions(self) -> Sequence[int]:
        """Return the partitions there are."""
        found = sorted(self.latest())
        if found != list(range(len(found))) or not found:
            raise SourceUnfit(
                f"plugin '{self.kind}' of source '{self.name}' has partitions {found}",
                hint="correct the plugin: partitions are 0, 1 and so on, one at least",
            )
        return found

    def latest(self) -> Mapping[int, int]:
        """Return the end of each partition."""
        with plugin_errors(OF_SOURCES, f"plugin '{self.kind}'"):
            return dict(self.source.ends())

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return where rows begin, end, or are as late as a time."""
        ends = self.latest()
        if policy == "latest":
            return ends
        with plugin_errors(OF_SOURCES, f"plugin '{self.kind}'"):
            starts = dict(self.source.starts(None if policy == "earliest" else policy))
        return {partition: min(starts.get(partition, 0), end) for partition, end in ends.items()}

    def reads(self, start: Mapping[int, int], end: Mapping[int, int]) -> Sequence[PluginRead]:
        """Return what tasks read ranges with."""
        return [
            PluginRead(
                name=self.name,
                kind=self.kind,
                source=self.source,
                partition=partition,
                start=start[partition],
                end=stop,
            )
            for partition, stop in sorted(end.items())
            if start[partition] < stop
        ]

    def found(self, start: Mapping[int, int], end: Mapping[int, int]) -> None:
        """Return None: the plugin can read all of it elsewhere."""

    def know(self, found: None) -> None:
        """Do nothing."""

    def forget(self, before: Mapping[int, int], now: int) -> None:
        """Do nothing: what the plugin keeps is its own."""

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        """Return the records of ranges."""
        return table_of(self.reads(start, end))
