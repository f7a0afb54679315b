"""The sources of a flow: how the records of each topic are read."""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.model.columns import Column
from kaflow_engine.model.key_formats import TEXT, KeyFormat


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
    """Named under state.dimensions, or read as a table only: never holds the watermark back."""
    rank: int
    """0 dimension or table, 1 event side, 2 driving: the first of its roles."""
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
    record_columns: tuple[Column, ...] = ()
    """Those of `model.record_columns` that the plan uses."""
    on_null: Literal["skip", "row"] = "skip"
    """What a null value of an event is."""
    key_format: KeyFormat = "text"
    key_type: str = TEXT
    """The type of `_key`."""

    @property
    def is_kept(self) -> bool:
        """Whether its values are kept by key, and loaded before events; it may be events, too."""
        return self.dimension or self.rank == 0
