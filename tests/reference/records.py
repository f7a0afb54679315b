"""Records, batches, and what the oracle says about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Position = tuple[int, int, int, str, int, int]
"""(batch, order time, role, topic, partition, offset): the place of a record in the one order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One Kafka record. `ts` is the Kafka timestamp in ms."""

    topic: str
    offset: int
    ts: int
    partition: int = 0
    key: str | None = None
    value: Mapping[str, object] | None = None
    raw: bytes | None = None
    """Bytes that cannot be decoded, instead of a value."""
    headers: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    is_null: bool = False
    """It had no value, and is a row of NULLs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch; every partition is read to its end in it."""

    time: int
    """Batch time in ms."""
    records: tuple[Record, ...] = ()
    last: bool = False
    """The empty batch that ends a bounded run: its watermark is +infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """One output row; `timestamp` is the event time of its driving record, of a group the greatest
    one of its rows.
    """

    topic: str
    key: object
    value: Mapping[str, object] | None
    """None: a delete."""
    timestamp: int
    headers: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class DeadLetter:
    """A bad record, or a driving record that on_expiry sends away."""

    topic: str
    partition: int
    offset: int
    phase: str
    chain: str = ""
    """In which chain alone it failed; empty where it counts for all, or there is one."""

    @property
    def place(self) -> tuple[str, int, int]:
        """Where the record was."""
        return self.topic, self.partition, self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What one batch did. Counters are totals at the end of the batch."""

    rows: tuple[Emitted, ...]
    dead_letters: tuple[DeadLetter, ...]
    counters: Mapping[str, int]
    """Of driving records and sides the sums over the chains."""
    watermarks: tuple[float | None, ...]
    """Of each chain, at the start of the batch; None before anything is known."""
    closed: frozenset[tuple[str, object]] = frozenset()
    """Topic and key of windows that are over, and whose changes leave as they arise."""


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """A good record in its place. Equal only to itself."""

    record: Record
    ts: int
    """Event time."""
    position: Position
