"""The kinds of what stands after FROM and JOIN, and which of two that are joined drives."""

from typing import Literal

Kind = Literal["events", "changes", "table", "dimension"]
"""What rows are: facts of their own, rows that replace one which is not known, those of a table, or
the records of a dimension, whose kind depends on what it is joined to."""
Drives = Literal["events", "changes", "table"]
ORDER: tuple[Drives, ...] = ("events", "changes", "table")
"""Of two that are joined the one that comes first here drives; of two tables none does."""


def beside(first: Kind, second: Kind) -> tuple[Drives, Drives]:
    """Return what two are that are joined: beside a table a dimension is one, too.

    >>> beside("dimension", "table"), beside("events", "dimension")
    (('table', 'table'), ('events', 'events'))
    """
    return _beside(first, second), _beside(second, first)


def _beside(one: Kind, other: Kind) -> Drives:
    if one != "dimension":
        return one
    return "table" if other in ("table", "changes") else "events"
