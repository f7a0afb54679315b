"""What makes columns of rows NULL: fields of topics, joins, and expressions of SELECTs before."""

from collections.abc import Iterable, Mapping, Sequence
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

    def has(self, name: str) -> bool:
        """Tell whether there surely is a column of that name."""
        ...

    def causes(self, path: Sequence[str]) -> Causes | None:
        """Return what makes a column NULL, None where there is no such column.

        Args:
            path: Its name, and that of fields inside of it.
        """
        ...


def causes_among(sources: Iterable[Rows], path: Sequence[str]) -> Causes | None:
    """Return what makes a column NULL that one of some sources has, None where none has it; where
    no source surely has it, what may make it NULL of every one that may have it."""
    every = tuple(sources)
    sure = [rows for rows in every if rows.has(path[0])]
    found = [rows.causes(path) for rows in sure or every]
    if all(causes is None for causes in found):
        return None
    return tuple(cause for causes in found for cause in causes or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """Records of a topic."""

    topic: str
    columns: frozenset[str] | None
    """In lower case; None: the file does not say them."""
    nullable: frozenset[str]
    """As the file says; fields of fields, too."""

    def has(self, name: str) -> bool:
        """Tell whether the file says so."""
        return self.columns is not None and name.lower() in self.columns

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
    """By name, in lower case; `a.b` of one inside of another."""
    others: tuple[Rows, ...]
    """Whose columns it takes over by `*`."""

    def has(self, name: str) -> bool:
        """Look where `causes` does."""
        return self._own((name,)) is not None or any(rows.has(name) for rows in self.others)

    def causes(self, path: Sequence[str]) -> Causes | None:
        """Look among the items, then among what was taken over."""
        own = self._own(path)
        return causes_among(self.others, path) if own is None else own

    def _own(self, path: Sequence[str]) -> Causes | None:
        """Return what makes an item NULL that is a field, stands around it, or inside of it."""
        names = [name.lower() for name in path]
        around = (".".join(names[:end]) for end in range(len(names), 0, -1))
        found = next((self.items[name] for name in around if name in self.items), None)
        if found is None and any(name.startswith(f"{'.'.join(names)}.") for name in self.items):
            return ()  # a struct of fields is never NULL itself
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterRows:
    """Rows of a source that may be missing."""

    of: Rows
    why: str

    def has(self, name: str) -> bool:
        """Ask the source."""
        return self.of.has(name)

    def causes(self, path: Sequence[str]) -> Causes | None:
        """Return that the row may be missing."""
        return None if self.of.causes(path) is None else (Cause(why=self.why),)
