"""A record that is taken out alone, and why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record that is taken out alone."""

    row: int
    phase: str
    error: str
    message: str
