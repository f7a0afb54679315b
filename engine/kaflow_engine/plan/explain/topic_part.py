"""How an input is read, as data."""

from dataclasses import dataclass

from kaflow_engine.model.columns import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """Where the records of a source come from that is no topic."""

    kind: str
    about: str
    """In a few words."""
    record_time: str
    """What the timestamp of a record is."""
    pages_by: str | None = None
    """The key of a table that is read in pages."""
    guarantee: str | None = None
    """What is promised of its records beside what is said of all."""
    format: str | None = None
    """Of files."""
    path: str | None = None
    ends: bool = False
    """Whether a run reads all there is of it, and then ends."""
    journal: str | None = None
    """Where records are written down when they come, below `state.rocksdb.path`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPart:
    """One input topic, or another source; durations in ms."""

    name: str
    roles: tuple[str, ...]
    """`driving`, `event side`, `dimension`."""
    format: str
    event_time: str | None
    """The column; None: the Kafka timestamp."""
    other_times: tuple[tuple[str | None, tuple[str, ...]], ...] = ()
    """Columns that readings have instead, with the names of these."""
    ttl: int | None
    """None: kept for ever."""
    ttl_from: str | None
    lateness: int
    idle_timeout: int
    max_future: int
    on_error: str
    on_data_loss: str
    on_schema_change: str
    lookup: str | None
    """Of a dimension."""
    keep: int | None
    """How long versions are kept."""
    history: str | None
    """Where files are that come before the topic."""
    tombstones: str | None
    """What a null value does."""
    keys: str | None = None
    """The format of keys, of JSON with their type; None: text."""
    source: SourcePart | None = None
    """None: a topic."""
    place: str | None = None
    """`<cluster>/<topic>`, or the name of the topic; None: it is the one of that name."""
    columns: tuple[Column, ...] | None
    """None: not known yet."""
    looked_up: bool = False
    """It is not read: its rows are looked up where they are."""

    @property
    def target(self) -> str:
        """What the topic is called where it is written."""
        return self.place or self.name
