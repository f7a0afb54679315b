"""What a task needs to know of a plan: frozen, picklable, nothing but text and numbers.

Expressions are DuckDB SQL over quoted identifiers `"alias.column"` (see `sql.shape`).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from kaflow_engine.model.columns import Column

Role = Literal["dimension", "event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryParams:
    """Files with the first records of a topic, and the columns that say which record is which."""

    path: str
    format: Literal["parquet", "json", "delta"]
    partition: str
    offset: str
    timestamp: str
    key: str | None
    """None: `key`, where there is such a column."""
    value: str | None
    """None: all columns together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicParams:
    """How the records of one topic are read."""

    name: str
    index: int
    """Place among the pipeline's topics by code point."""
    format: str
    """A name of `model.formats`."""
    columns: tuple[Column, ...]
    """The columns that the plan uses."""
    event_time: str | None
    """SQL that gives epoch milliseconds over `"c.<column>"`; None: the Kafka timestamp."""
    dimension: bool
    """Named under state.dimensions: never holds the watermark back."""
    rank: int
    """0 dimension, 1 event side, 2 driving: the first of its roles."""
    driving: bool
    on_error: Literal["dead_letter", "skip", "fail"]
    max_future: int
    lateness: int
    idle_timeout: int
    on_data_loss: Literal["fail", "continue"] = "fail"
    history: HistoryParams | None = None
    """Where records are that came before those read from the topic."""
    schema_id: int | None = None
    """Under `on_schema_change: fail`, the schema that others must not differ from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideParams:
    """One joined side of a step."""

    alias: str
    topic: int
    role: Role
    kind: Literal["LEFT", "INNER"]
    columns: tuple[Column, ...]
    """What is kept of a record, named as in the topic."""
    key: str
    """SQL text of the join key over `"alias.column"`."""
    filter: str | None
    ttl: int
    """Milliseconds that an event is kept."""
    lookup: Literal["current", "as_of"]
    keep: int
    """Milliseconds of versions kept under `as_of`."""
    tombstones: bool
    """A null value deletes the entry under the record's Kafka key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParams:
    """Joins over one key."""

    before: tuple[Column, ...]
    """The row as it arrives: columns named `alias.column`."""
    sides: tuple[SideParams, ...]
    require: str | None
    """SQL over before and sides: true when the row may leave; None when only INNER sides decide."""
    after: tuple[Column, ...]
    """What later steps need; empty for the last step."""
    next_key: str | None
    """SQL text of the next step's key."""

    @property
    def events(self) -> tuple[int, ...]:
        """The event sides, as indices of `sides`."""
        return tuple(i for i, side in enumerate(self.sides) if side.role == "event")

    @property
    def inner(self) -> tuple[int, ...]:
        """The INNER sides."""
        return tuple(i for i, side in enumerate(self.sides) if side.kind == "INNER")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivingParams:
    """How a driving record becomes a row."""

    alias: str
    topic: int
    columns: tuple[Column, ...]
    """Kept columns, named as in the topic."""
    filter: str | None
    key: str | None
    """SQL text of the first step's key; None without steps."""
    needs: str | None
    """SQL over driving columns; where it is not true the row can never become complete."""
    raw: str | None
    """SQL: where true the original bytes travel along, for a dead letter; None: never."""
    ttl: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableParams:
    """A table, partitioned by the event time of driving records."""

    name: str
    path: str
    """Its folder."""
    partition: Literal["hour", "day"]
    columns: tuple[Column, ...]
    """As the table keeps them."""
    interval: int
    """Milliseconds that a stream which is not behind lets rows gather before a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishParams:
    """How a finished row becomes a record, or a row of a table."""

    where: str | None
    outputs: tuple[tuple[Column, str], ...]
    key: str | None
    topic: str | None
    """None: rows go into the table."""
    format: str
    """A name of `model.formats`, or `texts`: a JSON list of each column's text, for a table."""
    avro_schema: str | None = None
    avro_id: int | None = None
    table: TableParams | None = None

    @property
    def target(self) -> str:
        """The name of the topic or table."""
        return self.topic or (self.table.name if self.table else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A range of event time, in epoch milliseconds."""

    start: int
    end: int
    """Does not belong to the range."""
    slack: int = 3_600_000
    """How far, in milliseconds, a record's event time may be from its Kafka timestamp."""
    force: bool = False
    """Whether it may write what the stream may still write, too, and replace rows that do not say
    which record they were made of."""

    def __str__(self) -> str:
        return "/".join(instant(at) for at in (self.start, self.end))


def instant(milliseconds: int) -> str:
    """Return an instant as people write it.

    >>> instant(1_767_225_600_000)
    '2026-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One pipeline, ready to run."""

    pipeline: str
    """The stable id."""
    name: str
    topics: tuple[TopicParams, ...]
    driving: DrivingParams
    steps: tuple[StepParams, ...]
    finish: FinishParams
    emission: Literal["immediate", "smart", "final"]
    on_expiry: Literal["drop", "emit", "dead_letter"]
    reemit: bool
    partitions: int
    ledger: bool
    """Rows of one driving record part before it is settled; one more stage accounts for them."""
    last_exchange: bool
    """Rows travel once more, so that those of one output key leave in order."""
    dead_letter_topic: str
    delivery: Literal["exactly_once", "at_least_once"]
    dimensions_first: bool
    max_dead_letters: int | None = None
    """Beyond so many dead letters a run stops."""
    max_dead_rate: float | None = None
    """Beyond this share of the records read a run stops."""
    backfill: Backfill | None = None
    """Only what belongs to driving records of its range is delivered; None: everything."""

    @property
    def stage_count(self) -> int:
        """Map, steps, then the ledger and the last exchange where there are such."""
        return 1 + len(self.steps) + int(self.ledger) + int(self.last_exchange)

    @property
    def state_steps(self) -> range:
        """The numbers of what has state: the steps from 1, then the ledger."""
        return range(1, 1 + len(self.steps) + int(self.ledger))
