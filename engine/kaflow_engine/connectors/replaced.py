"""The rows that a backfill replaces in an output."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedRecords:
    """The rows in whose place a backfill puts its own: those made of records that it has read."""

    partitions: frozenset[str]
    """Of the output; rows of others stay."""
    source: tuple[str, str]
    """Columns: partition and offset of the record that a row was made of."""
    read: Mapping[int, tuple[int, int]]
    """By source partition the first offset that was read, and the one after the last."""
    unknown: bool
    """Whether rows that name no record go, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedGroups:
    """The rows in whose place a backfill puts its own: those of all windows of its partitions."""

    partitions: frozenset[str]
    """Of the output; rows of others stay."""
    group: str
    """Column: the group and the window that a row is of."""
    unknown: bool
    """Whether rows that name no group go, too."""


Replaced = ReplacedRecords | ReplacedGroups
