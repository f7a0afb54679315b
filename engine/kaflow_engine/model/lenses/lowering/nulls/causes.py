"""What makes columns of rows NULL: fields of topics, joins, and expressions of SELECTs before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that may be NULL."""

    why: str
    topic: str | None = None
    """Whose schema decides; None: it may be NULL whatever schemas say."""
    fields: tuple[str, ...] = ()
    """Of that topic, in lower case."""


Causes = tuple[Cause, ...]
"""Of an expression; none: it is never NULL."""


class Rows(Protocol):
    """Rows of a source."""

    def causes(self, path: Sequence[str]) -> Causes | None:
        """Return what makes a column NULL, None where there is no such column.

        Args:
            path: Its name, and that of fields inside of it.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """Records of a topic."""

    topic: str
    columns: frozenset[str] | None
    """In lower case; None: the file does not say them."""
    nullable: frozenset[str]
    """As the file says; fields of fields, too."""

    def causes(self, path: Sequence[str]) -> Causes | None:
        """Ask the file, or leave it to the registered schema."""
        names = [name.lower() for name in path]
        fields = tuple(".".join(names[: end + 1]) for end in range(len(names)))
        shown = ".".join(path)
        why = f"the field '{shown}' of '{self.topic}' is nullable"
        if self.columns is None:
            return (Cause(why=why, topic=self.topic, fields=fields),)
        if names[0] not in self.columns:
            return None
        return () if self.nullable.isdisjoint(fields) else (Cause(why=why),)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRows:
    """Rows of a SELECT."""

    items: Mapping[str, Causes]
    """By name, in lower case."""
    others: tuple[Rows, ...]
    """Whose columns it takes over by `*`."""

    def causes(self, path: Sequence[str]) -> Causes | None:
        """Look among the items, then among what was taken over."""
        own = self.items.get(path[0].lower())
        if own is not None:
            return own
        found = (rows.causes(path) for rows in self.others)
        return next((causes for causes in found if causes is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterRows:
    """Rows of a source that may be missing."""

    of: Rows
    why: str

    def causes(self, path: Sequence[str]) -> Causes | None:
        """Return that the row may be missing."""
        return None if self.of.causes(path) is None else (Cause(why=self.why),)
