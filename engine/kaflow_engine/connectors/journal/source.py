"""A journal as a source: what it was given, in one partition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kaflow_engine.connectors.journal.folder import ended_by
from kaflow_engine.connectors.journal.journal import journal_end
from kaflow_engine.connectors.journal.open_journals import written_here
from kaflow_engine.connectors.journal.segments import frames_between, segments
from kaflow_engine.connectors.sources.contract import StartPolicy
from kaflow_engine.connectors.sources.records import table_of
from kaflow_engine.errors import SourceError
from kaflow_engine.flow.records import RECORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRead:
    """A range of records; see `RangeRead`."""

    source: str
    folder: Path
    start: int
    end: int

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Raises:
            SourceError: Some are no longer there.
        """
        reached = self.start
        for frame in frames_between(self.folder, self.start, self.end):
            if frame.first > reached:
                break
            skip, end = max(0, self.start - frame.first), min(frame.end, self.end)
            records = frame.records().slice(skip, end - frame.first - skip)
            yield from _placed(self.source, frame.first + skip, records).to_batches()
            reached = end
        if reached < self.end:
            raise SourceError(
                f"the journal '{self.folder}' has no record {reached} of source '{self.source}'",
                hint="restore its files from a backup; nothing but kaflow may delete files there",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSource:
    """Records in the order in which they were written down."""

    name: str
    folder: Path
    ends_as: str | None = None
    """The kind of source that gives the records, where it comes to an end; None: it does not."""

    @property
    def finite(self) -> bool:
        """Whether what gives the records comes to an end."""
        return self.ends_as is not None

    @property
    def bounded(self) -> bool:
        """Whether all has come that ever will; the end of another kind of source is none of it."""
        return self.finite and ended_by(self.folder) == self.ends_as

    def partitions(self) -> Sequence[int]:
        """Return the one there is."""
        return (0,)

    def latest(self) -> Mapping[int, int]:
        """Return the offset of the next record.

        Raises:
            KaflowError: No more come, because the receiver has failed for good.
        """
        journal = written_here(self.folder)
        if journal is not None and journal.failure is not None:
            raise journal.failure
        return {0: journal_end(self.folder) if journal is None else journal.end}

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return where records begin, end, or are as late as a time."""
        first = next((first for first, _ in segments(self.folder)), 0)
        end = self.latest()[0]
        if policy == "earliest":
            return {0: first}
        if policy == "latest":
            return {0: end}
        for frame in frames_between(self.folder, first, end):
            for place, time in enumerate(frame.records()["timestamp"].to_pylist()):
                if time >= policy:
                    return {0: frame.first + place}
        return {0: end}

    def reads(self, start: Mapping[int, int], end: Mapping[int, int]) -> Sequence[JournalRead]:
        """Return what tasks read a range with."""
        if start[0] >= end[0]:
            return ()
        read = JournalRead(source=self.name, folder=self.folder, start=start[0], end=end[0])
        return (read,)

    def found(self, start: Mapping[int, int], end: Mapping[int, int]) -> None:
        """Return None: the records are on this machine only."""

    def know(self, found: None) -> None:
        """Do nothing."""

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        """Return the records of a range."""
        return table_of(self.reads(start, end))

    def forget(self, before: Mapping[int, int], now: int) -> None:
        """Let go of records that were read, once they are old."""
        journal = written_here(self.folder)
        if journal is not None and 0 in before:
            journal.forget(before[0], now)


def _placed(source: str, first: int, records: pa.Table) -> pa.Table:
    count = records.num_rows
    columns = {
        "topic": pa.repeat(pa.scalar(source), count),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
        "offset": pa.array(range(first, first + count), pa.int64()),
        **{name: records[name] for name in records.column_names},
    }
    return pa.table([columns[field.name] for field in RECORDS], schema=RECORDS)
