"""A source that is no topic, as data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """Where the records of a source come from that is no topic."""

    kind: str
    about: str
    """In a few words."""
    record_time: str
    """What the timestamp of a record is."""
    format: str | None = None
    """Of files."""
    path: str | None = None
