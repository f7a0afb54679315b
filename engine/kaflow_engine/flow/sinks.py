"""The sinks of a flow: what rows are written to, and in which form.

Encoding belongs to the sink: the same rows may leave as JSON on one topic and as Avro on another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.model.columns import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class TableParams:
    """A table, partitioned by the event time of driving records, or by the start of windows."""

    name: str
    path: str
    """Its folder."""
    partition: Literal["hour", "day"]
    columns: tuple[Column, ...]
    """As the table keeps them."""
    interval: int
    """Milliseconds that a stream which is not behind lets rows gather before a batch."""
    grouped: bool = False
    """A row is that of a group and a window, which the key of its sink tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSink:
    """Rows as records of a topic."""

    type: Literal["topic"] = "topic"
    id: str
    inputs: tuple[str, ...]
    """Operators whose rows it takes."""
    exchange: bool
    """Rows travel once more, so that those of one key leave in order."""
    key: str | None
    topic: str
    format: str
    """A name of `model.formats`."""
    avro_schema: str | None = None
    avro_id: int | None = None
    key_in_value: bool = True
    """The key column is part of the value."""
    compacted: bool = False
    """The rows are those of a table: the last one of a key counts, and a null value deletes it."""
    coalesced: bool = False
    """Of a table one change leaves for each key and batch, also where more of them come."""

    @property
    def target(self) -> str:
        """The name of the topic."""
        return self.topic


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSink:
    """Rows of a table."""

    type: Literal["table"] = "table"
    id: str
    inputs: tuple[str, ...]
    """Operators whose rows it takes."""
    exchange: bool
    """Rows travel once more, so that those of one key leave in order."""
    key: str | None
    table: TableParams

    @property
    def target(self) -> str:
        """The name of the table."""
        return self.table.name


Sink = TopicSink | TableSink


def value_columns(sink: Sink, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return those columns of rows that a sink writes as value of a record, or as row."""
    own_key = sink.table.grouped if isinstance(sink, TableSink) else not sink.key_in_value
    if own_key:
        return tuple(column for column in columns if column.name != sink.key)
    return tuple(columns)
