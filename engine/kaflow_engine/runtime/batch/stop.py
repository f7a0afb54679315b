"""Reasons for which a run ends without a failure."""

from dataclasses import dataclass, field
from threading import Event
from typing import Literal

Ending = Literal["caught up", "drained", "limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a run ends by itself."""

    until_caught_up: bool = False
    """At the ends that its topics had when it began, once nothing is due."""
    max_records: int | None = None
    """After the batch that reaches this many records."""
    stop: Event = field(default_factory=Event)
    """Set to drain: the batch that runs is finished, and no other begun."""
    overdue: Event = field(default_factory=Event)
    """Set once that took too long, and no one waits any more."""
