"""What a pipeline file says of its queries: when their rows leave, what is kept, and how long."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled
from kaflow_engine.model.spec import Spec

Coalesce = Literal["batch", "none"]
"""Whether changes of one key in one batch leave as one."""
RowTime = Literal["driving", "latest"]
"""The event time of a joined row: that of its driving record, or the greatest of its events."""

Lookup = Literal["current", "before"]
"""What a record sees of a table that it changes itself: the table with that, or before it."""


class EmissionSpec(Spec):
    """When a row is emitted."""

    type: Literal["immediate", "smart", "on_match", "final"] = "immediate"
    require: tuple[Filled, ...] = ()
    """Output columns that must not be NULL, for `smart`."""
    on_expiry: Literal["drop", "emit", "dead_letter"] = "drop"
    coalesce: Coalesce = "batch"
    """Of an aggregate: one update for each group and batch, or every one."""
    late_updates: bool = False
    """Of final windows: the row leaves at the end of the window, and again with late rows."""
    windows: Literal["immediate", "final"] | None = None
    """When rows of windows leave, whatever `type` says of the join below them; None: as `type`."""
    every: Duration | None = None
    """How long a key that sent a change holds the next one back, in ms of batch time."""

    @property
    def opens_windows(self) -> bool:
        """Whether changes of windows leave as they arise."""
        if self.windows is not None:
            return self.windows == "immediate"
        return "type" in self.model_fields_set and self.type == "immediate"


def _within(value: object) -> object:
    return {"before": value, "after": value} if isinstance(value, str | int) else value


class ApartSpec(Spec):
    """How far the times of two events may be apart that match, in ms."""

    before: Duration | None = None
    """How much earlier the right one may be; None: the TTL of its topic."""
    after: Duration | None = None
    """How much later it may be; None: the TTL of the left one's topic."""


class WithinSpec(ApartSpec):
    """How far the times of events may be apart that match, in ms; for `on_match`."""

    grace: Duration = 0
    """How long a match may be late."""
    joins: dict[str, Annotated[ApartSpec, BeforeValidator(_within)]] = Field(default={})
    """What counts for single joins instead, by what the query calls their right side."""

    def of_join(self, called: str) -> ApartSpec:
        """Return what counts for the join of what the query calls so."""
        named = (said for name, said in self.joins.items() if name.lower() == called.lower())
        return next(named, self)


Within = Annotated[WithinSpec | None, BeforeValidator(_within)]
"""A duration alone is both `before` and `after`."""


class AggregationSpec(Spec):
    """How long groups last, and what becomes of records that come too late for their window."""

    ttl: Duration | None = None
    """A group that saw no record for so long, in ms, is forgotten; None: never."""
    grace: Duration = 0
    """How long after its end a window takes records, in ms."""
    on_late: Literal["drop", "dead_letter"] = "drop"
    retain: Duration | None = None
    """How long who reads windows as a table sees one after it was closed, in ms; None: for ever."""


class EventsSpec(Spec):
    """How long the records of event topics are kept, in ms."""

    default_ttl: Duration | None = None
    overrides: dict[str, Duration] = Field(default={})

    def over(self, others: "EventsSpec") -> "EventsSpec":
        """Return how long records are kept where what is not said here is as said elsewhere."""
        if self.default_ttl is not None:
            return self
        return self.model_copy(
            update={
                "default_ttl": others.default_ttl,
                "overrides": {**others.overrides, **self.overrides},
            }
        )


class StateSpec(Spec):
    """What is remembered."""

    events: EventsSpec = EventsSpec()
    dimensions: tuple[Filled, ...] = ()


OF_QUERIES = ("emission", "within", "row_time", "lookup", "aggregation", "state")
"""Keys that a query may say itself: each counts instead of all that the pipeline says under it,
`state` topic by topic."""


class QuerySettings(Spec):
    """What one query says itself; None: as the pipeline."""

    emission: EmissionSpec | None = None
    within: Within = None
    row_time: RowTime | None = None
    lookup: Lookup | None = None
    aggregation: AggregationSpec | None = None
    state: StateSpec | None = None
    """How long the events are kept that it joins; dimensions are those of the pipeline."""
