"""What a task needs to know of a pipeline: frozen, picklable, nothing but text and numbers."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from kaflow_engine.flow.operators import Operator
from kaflow_engine.flow.sinks import ConnectorSink, SideOutput, Sink, TopicSink
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.model.brought.positions import PositionParams


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
class Beginning:
    """What was added over a table that had rows: its first batch begins with all of them."""

    table: int
    """The name of the state that holds them."""
    reader: str
    """What begins, as `flow.beginnings` calls it: the same one in later plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One pipeline, ready to run; `flow.graph` answers what its edges mean."""

    pipeline: str
    """The stable id."""
    name: str
    sources: tuple[TopicParams, ...]
    operators: tuple[Operator, ...]
    """Each behind those whose rows it takes."""
    sinks: tuple[Sink, ...]
    partitions: int
    dead_letter_topic: str | None
    """None: it uses no broker; its runs are noted, and its dead letters written, in files beside
    its state."""
    delivery: Literal["exactly_once", "at_least_once"]
    dimensions_first: bool
    max_dead_letters: int | None = None
    """Beyond so many dead letters a run stops."""
    max_dead_rate: float | None = None
    """Beyond this share of the records read a run stops."""
    backfill: Backfill | None = None
    """Only what belongs to driving records of its range is delivered; None: everything."""
    letters: ConnectorSink | Literal["files"] | None = None
    """Where dead letters go instead of to their topic: a table, or files beside the state."""
    consumer_group: str | None = None
    """Where offsets are reported, and at whose committed offsets events begin; None: a group of
    the pipeline's own, and they begin as the configuration says."""
    auto_offset_reset: Literal["earliest", "latest"] | None = None
    """Where events begin otherwise; None: as the configuration says."""
    positions: PositionParams | None = None
    """What another program that has read the topics knows of them: where events begin, in front of
    what the two above say; None: there is none. No state depends on it."""
    cluster: str = ""
    """Where the topic of dead letters is, and the one that knows its runs; empty: where topics are
    that name none."""
    side_outputs: tuple[SideOutput, ...] = ()
    """What sees rows before they leave; no state depends on it."""
    retired: tuple[int, ...] = ()
    """Numbers of chains that the state once had: no other chain gets them."""
    retired_states: tuple[int, ...] = ()
    """States of aggregates that chains once had: no other aggregate gets them."""
    begins: tuple[Beginning, ...] = ()
    """What has begun with the rows of a table, or will with the first batch of this plan: that is
    what the plan of the batch before does not have."""

    @property
    def written_clusters(self) -> frozenset[str]:
        """The clusters that have topics which it writes, dead letters among them."""
        topics = {sink.cluster for sink in self.sinks if isinstance(sink, TopicSink)}
        return frozenset(topics if self.dead_letter_topic is None else {*topics, self.cluster})
