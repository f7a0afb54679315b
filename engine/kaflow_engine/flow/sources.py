"""The sources of a flow: how the records of each topic are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kaflow_engine.flow.origins.databases import DatabaseParams
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HybridParams
from kaflow_engine.flow.origins.plugins import (
    JournalledPluginParams,
    PluginParams,
    PySparkParams,
)
from kaflow_engine.flow.origins.topics import TopicPlace
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
class DrawnParams:
    """How the values of one generated column are distributed."""

    name: str
    distribution: str
    min: float
    max: float
    digits: int
    mean: float
    deviation: float
    of: tuple[str, ...]
    prefix: str | None
    nulls: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorParams:
    """Made-up records: record n is a function of the seed and n."""

    type: Literal["generator"] = "generator"
    rate: float
    seed: int
    records: int | None
    start: int | None
    """Epoch milliseconds; None: when the state began."""
    values: tuple[DrawnParams, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookParams:
    """Requests that others send."""

    type: Literal["webhook"] = "webhook"
    listen: str
    path: str
    secret: str | None
    """The name of the one that senders sign with; None: they do not."""
    signature_header: str
    signature_prefix: str
    idempotency_header: str
    max_bytes: int
    max_connections: int
    max_backlog: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueParams:
    """A text that may end with a secret."""

    name: str = ""
    """Of the header or parameter."""
    text: str
    secret: str | None
    """The name of the one that stands behind the text."""

    def with_secret(self, secrets: Mapping[str, str]) -> str:
        """Return the text with its secret; it must never be logged.

        Args:
            secrets: By name.
        """
        return self.text + (secrets[self.secret] if self.secret is not None else "")


def with_secrets(values: Sequence[ValueParams], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return texts with their secrets by the names of the texts; they must never be logged.

    Args:
        values: Headers or parameters.
        secrets: By name.
    """
    return {each.name: each.with_secret(secrets) for each in values}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebsocketParams:
    """Messages that a server sends; durations in milliseconds."""

    type: Literal["websocket"] = "websocket"
    url: str
    headers: tuple[ValueParams, ...]
    parameters: tuple[ValueParams, ...]
    send: tuple[ValueParams, ...]
    max_bytes: int
    max_backlog: int
    ping: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorParams:
    """How a request says which records it has already."""

    field: str
    parameter: str
    start: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpParams:
    """Records in answers to requests; durations in milliseconds."""

    type: Literal["http"] = "http"
    url: str
    headers: tuple[ValueParams, ...]
    parameters: tuple[ValueParams, ...]
    interval: int
    records: str | None
    cursor: CursorParams | None
    next: str | None
    max_pages: int
    max_bytes: int
    max_backlog: int
    timeout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttParams:
    """Messages of a broker; durations in milliseconds."""

    type: Literal["mqtt"] = "mqtt"
    broker: str
    topics: tuple[str, ...]
    client_id: str
    user: ValueParams | None
    password: str | None
    """The name of the secret."""
    ca: str | None
    max_backlog: int
    keepalive: int


JournalParams = (
    WebhookParams
    | WebsocketParams
    | HttpParams
    | MqttParams
    | JournalledPluginParams
    | PySparkParams
)
"""The settings of a source whose records are written to a journal."""
SourceParams = (
    FilesParams | GeneratorParams | PluginParams | JournalParams | DatabaseParams | HybridParams
)
"""The settings of a source that is no topic."""


CLOCK = "@"
"""Stands between a topic and one of its event times; no name of a topic has it."""


def topic_of_clock(clock: str) -> str:
    """Return the topic whose records a clock times.

    >>> topic_of_clock("orders"), topic_of_clock("orders@shipped")
    ('orders', 'orders')
    """
    return clock.partition(CLOCK)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherClock:
    """Another event time of a topic, and what its records are to the queries that read by it."""

    name: str
    """`<topic>@<column>`."""
    event_time: str | None
    dimension: bool
    rank: int
    driving: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicParams:
    """How the records of one topic are read.

    Event time, dimension, rank and driving are those of its first clock; `by` gives the others.
    """

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
    clock: str = ""
    """What the watermark knows its first clock by; empty: by the name of the topic."""
    clocks: tuple[OtherClock, ...] = ()
    """Event times that readings of the topic have of their own."""
    connector: SourceParams | None = None
    """Where its records come from; None: from a topic."""
    cluster: str = ""
    """Where the topic is; empty: where topics are that name none."""
    topic: str = ""
    """What it is called there; empty: by its name here."""

    @property
    def place(self) -> TopicPlace:
        """Which topic it is, if it is one."""
        return TopicPlace(cluster=self.cluster, topic=self.topic or self.name)

    @property
    def clock_name(self) -> str:
        """What the watermark knows its first clock by."""
        return self.clock or self.name

    @property
    def by_clock(self) -> tuple["TopicParams", ...]:
        """The topic by each of its clocks."""
        return tuple(self.by(number) for number in range(len(self.clocks) + 1))

    def by(self, clock: int) -> "TopicParams":
        """Return the topic as it is by one of its clocks, of which there is then no other."""
        if clock == 0:
            return replace(self, clocks=()) if self.clocks else self
        other = self.clocks[clock - 1]
        return replace(
            self,
            clock=other.name,
            event_time=other.event_time,
            dimension=other.dimension,
            rank=other.rank,
            driving=other.driving,
            clocks=(),
        )

    @property
    def is_kept(self) -> bool:
        """Whether its values are kept by key, and loaded before events; it may be events, too."""
        return any(each.dimension or each.rank == 0 for each in (self, *self.clocks))

    @property
    def drives(self) -> bool:
        """Whether its records make rows, by any of its clocks."""
        return any(each.driving for each in (self, *self.clocks))
