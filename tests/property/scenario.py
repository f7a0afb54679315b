"""A random run: a pipeline, its records, and how they are cut into batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tests.reference.arrival import Stopped
from tests.reference.interpreter import Oracle
from tests.reference.pipeline import OraclePipeline
from tests.reference.records import Batch, BatchResult, DeadLetter, Emitted, Record

Item = tuple[Record, ...] | int
"""The records of one batch, or the ms that an empty batch moves batch time on."""


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How the queries of a pipeline are written down; the meaning is the same."""

    turned: bool = False
    """Every other equality has its sides exchanged."""
    right: bool = False
    """A LEFT JOIN that stands alone is written as a RIGHT JOIN."""
    using: bool = False
    """First joins are written with USING where they can be."""
    relation: bool = False
    """The joins of each chain are in a relation, which the queries of the outputs read."""
    united: bool = False
    """Unions are relations; what all their branches ask is asked of their rows."""
    tables: bool = False
    """Dimensions are written as tables, where all that join them do so by one column."""
    implied: bool = False
    """The pipeline does not name its emission, so that windows leave once."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A pipeline and what it is given.

    Batch time is `start`, or else the greatest Kafka timestamp so far, plus what was advanced.
    """

    pipeline: OraclePipeline
    items: tuple[Item, ...]
    writing: Writing = Writing()
    start: int | None = None
    bounded: bool = False

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """The batches, without the one that may be due at the end."""
        made: list[Batch] = []
        time, added = self.start, 0
        for item in self.items:
            if isinstance(item, int):
                added += item
                made.append(Batch(time=(time or 0) + added))
                continue
            if self.start is None:
                time = (
                    max(record.ts for record in item)
                    if time is None
                    else max(time, *(record.ts for record in item))
                )
            made.append(Batch(time=(time or 0) + added, records=item))
        return tuple(made)

    @property
    def records(self) -> tuple[Record, ...]:
        """All records."""
        return tuple(record for batch in self.batches for record in batch.records)

    @property
    def default_ttl(self) -> int:
        """A default TTL under which the TTLs of the pipeline can be written down."""
        dimensions = [t.ttl for t in self.pipeline.topics.values() if t.dimension]
        return dimensions[0] if dimensions else 20_000

    def interpret(self) -> "Interpreted":
        """Ask the oracle, with the empty batch that may be due at the end."""
        oracle = Oracle(self.pipeline)
        batches: list[Batch] = []
        results: list[BatchResult] = []
        for batch in self._with_end(oracle):
            batches.append(batch)
            try:
                results.append(oracle.run(batch))
            except Stopped:
                return Interpreted(batches=tuple(batches), results=tuple(results), stops=True)
        return Interpreted(batches=tuple(batches), results=tuple(results))

    def _with_end(self, oracle: Oracle) -> Iterator[Batch]:
        yield from self.batches
        end = self.batches[-1].time
        if self.bounded:
            yield Batch(time=end, last=True)
        elif oracle.is_due:
            yield Batch(time=end)


@dataclass(frozen=True, kw_only=True)
class Interpreted:
    """What the oracle said, batch by batch."""

    batches: tuple[Batch, ...]
    results: tuple[BatchResult, ...]
    stops: bool = False
    """The last batch ends in an error: it has no result."""

    @property
    def rows(self) -> tuple[Emitted, ...]:
        """All rows in order."""
        return tuple(row for result in self.results for row in result.rows)

    @property
    def dead_letters(self) -> tuple[DeadLetter, ...]:
        """All dead letters, sorted."""
        return tuple(sorted(letter for result in self.results for letter in result.dead_letters))

    @property
    def counters(self) -> Mapping[str, int]:
        """Totals at the end."""
        return self.results[-1].counters if self.results else {}
