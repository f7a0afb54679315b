"""What an aggregate works with in one task: its groups, and what the batch makes of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from kaflow_engine.flow.beginnings import inner_readings
from kaflow_engine.flow.chains.chain import Chain, chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import throttled_readers
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.operators.aggregate.entries import Group, row_tail
from kaflow_engine.operators.aggregate.groups import Groups
from kaflow_engine.operators.aggregate.windows import Numbers
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.operators.watermark import END


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of a group because of a row."""

    entry: bytes
    key: bytes
    start: int | None
    end: int | None
    ts: int
    by: int
    """The row, as a place among all rows of the batch."""
    row: str | None
    """The result, packed; None: it has none, or the group is no more."""
    failed: tuple[str, str] | None = None
    """Class and message of the error for which it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What became of many groups at once, column by column."""

    entries: pa.BinaryArray
    keys: pa.BinaryArray
    values: pa.BinaryArray
    """What is kept of them."""
    old: pa.StringArray
    """The rows that were sent last; null: none was."""
    new: pa.StringArray
    ts: Numbers
    by: Numbers
    """The row, as a place among all rows of the batch."""
    starts: Numbers
    ends: Numbers


@dataclass(kw_only=True)
class Work:
    """One aggregate in one task of one batch."""

    flow: Flow
    aggregate: Aggregate
    batch: BatchContext
    groups: Groups
    counters: Counter[str] = field(default_factory=Counter[str])
    sent: dict[bytes, str | None] = field(default_factory=dict[bytes, str | None])
    """The rows that groups, which the batch changes, sent last before it."""
    changes: list[Change] = field(default_factory=list[Change])
    changed: Changed | None = None
    """Where rows were taken at once; there are no `changes` then."""
    rows: list[pa.Table] = field(default_factory=list[pa.Table])
    """All rows so far, in their order."""
    numbers: Counter[bytes] = field(default_factory=Counter[bytes])
    """How many rows under each key were kept so far."""

    @cached_property
    def chain(self) -> Chain:
        """The chain that the aggregate belongs to."""
        return chain_of(self.flow, self.aggregate)

    @cached_property
    def watermark(self) -> int:
        """The operator's own, at the beginning of the batch."""
        horizon = self.batch.horizon(self.chain.number)
        return horizon if horizon >= END else horizon - self.aggregate.delay

    def due_in_chain(self, due: int) -> int:
        """Return what the watermark of the chain is when the operator's own is `due`."""
        return due + self.aggregate.delay

    def next_tail(self, key: bytes, identity: bytes = b"") -> bytes:
        """Return what tells the next row under a key, which is kept, apart."""
        self.numbers[key] += 1
        return row_tail(self.batch.batch, self.numbers[key], identity)

    def holds(self, stored: Group | None, over: int, *, early: bool) -> bool:
        """Tell whether a group waits for the end of its window, when a row comes to it.

        Args:
            stored: As it is kept; None: the row begins it.
            over: The time behind which its window has ended.
            early: The row is one of phase 0, and comes before windows end.
        """
        if self.aggregate.leaves != "ended":
            return False
        return stored.held if stored is not None else early or over >= self.watermark

    @cached_property
    def tells_closing(self) -> bool:
        """Whether others hear that a group is over: those who hold its changes back, which leave
        when its window is closed, or those who read a group that is forgotten as a row."""
        if not self.aggregate.is_table:
            return False
        if self.aggregate.window is None:
            return self.aggregate.ttl is not None and bool(
                inner_readings(self.flow, self.aggregate)
            )
        return bool(throttled_readers(self.flow, self.aggregate.id))

    @cached_property
    def retains(self) -> bool:
        """Whether operators that read windows as a table see them for a time after they are
        closed."""
        if self.aggregate.retain is None or not self.aggregate.is_table:
            return False
        return bool(inner_readings(self.flow, self.aggregate))

    @property
    def count(self) -> int:
        """How many rows there were so far."""
        return sum(rows.num_rows for rows in self.rows)


def texts(column: pa.ChunkedArray) -> list[bytes]:
    """Return binary values, none of which is null."""
    found: list[bytes] = column.to_pylist()
    return found


def no_rows() -> pa.Table:
    """Return no rows of schema EXCHANGE."""
    return EXCHANGE.empty_table()


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables of schema EXCHANGE as one."""
    return pa.concat_tables([no_rows(), *tables])
