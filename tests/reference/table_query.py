"""Tables as the oracle sees them: topics, joins, and what is selected of them.

Expressions are SQL over `alias.column`, which DuckDB evaluates.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["INNER", "LEFT", "RIGHT", "FULL"]
Use = tuple[str, str]
"""Alias and column."""


class Part(NamedTuple):
    """A part of a key."""

    columns: tuple[Use, ...]
    """The first that is there is the value."""
    equal: frozenset[Use]
    """Those that have the value in every row."""


KAFKA_KEY = "_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTopic:
    """A topic that is a table."""

    name: str
    columns: Mapping[str, str]
    """Column name to DuckDB type."""
    primary_key: tuple[str, ...] = ()
    """None: the Kafka key."""
    operation: str | None = None
    """`header:<name>` or `column:<name>`."""
    retain: int | None = None
    event_time: str | None = None
    """The column, in ms; None: the Kafka timestamp."""
    max_future: int = 86_400_000
    partitions: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of its key."""
        return self.primary_key or (KAFKA_KEY,)

    def types(self) -> dict[str, str]:
        """Return the types of its columns, those of records too."""
        return {KAFKA_KEY: "VARCHAR", **self.columns}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoin:
    """One joined table: the pairs of (SQL over what stands before, SQL over its own columns)."""

    kind: Kind
    alias: str
    on: tuple[tuple[str, str], ...]

    @property
    def keeps_left(self) -> bool:
        """Whether rows before it stay without a match."""
        return self.kind in ("LEFT", "FULL")

    @property
    def keeps_right(self) -> bool:
        """Whether its own rows stay without a match."""
        return self.kind in ("RIGHT", "FULL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What queries over tables read. Queries with equal ones share them."""

    sources: tuple[tuple[str, str], ...]
    """Aliases with their topics; the first one is joined to nothing."""
    joins: tuple[TableJoin, ...] = ()

    def preserved(self) -> frozenset[str]:
        """Return the aliases whose own conditions may be asked before the joins."""
        found = {self.sources[0][0]}
        for join in self.joins:
            found = set[str]() if join.keeps_right else found
            found |= set[str]() if join.keeps_left else {join.alias}
        return frozenset(found)

    def key(self, topics: Mapping[str, TableTopic]) -> tuple[Part, ...]:
        """Return the key of the joined rows (RELATIONS, section 5)."""
        keys: dict[str, tuple[Part, ...]] = {
            alias: tuple(_part((alias, column)) for column in topics[topic].key)
            for alias, topic in self.sources
        }
        key = keys[self.sources[0][0]]
        for join in self.joins:
            key = _joined_key(join, key, keys[join.alias])
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWrite:
    """One output over tables."""

    topic: str
    tables: Tables
    select: tuple[tuple[str, str], ...]
    """Names and SQL."""
    where: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    """What is grouped by; none: all rows are one group; None: there are no groups."""
    entry: tuple[str, ...] = ()
    """What the calls of aggregate functions read of a row."""
    having: str | None = None
    each: bool = False
    """Every change leaves; else one for each key and batch."""
    discriminator: tuple[str, object] | None = None
    """Of a branch of a UNION ALL: the column that comes first in the key, and its value."""

    def named(self, sql: str) -> str:
        """Return what the result calls a grouping value."""
        return next((name for name, each in self.select if each == sql), sql)


def named_parts(key: tuple[Part, ...], select: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Yield the names of the parts of a key: as the result calls them, where it has them."""
    names = [part.columns[0][1] for part in key]
    for part, name in zip(key, names, strict=True):
        own = name if names.count(name) == 1 else f"{part.columns[0][0]}.{name}"
        yield next((called for called, sql in select if sql in _spelled(part)), own)


def _joined_key(
    join: TableJoin, left: tuple[Part, ...], right: tuple[Part, ...]
) -> tuple[Part, ...]:
    on = {
        (one, other)
        for before, own in join.on
        for one in left
        for other in right
        if before in _spelled(one) and own in _spelled(other)
    }
    covers_left = all(_is_asked(part, [before for before, _ in join.on]) for part in left)
    covers_right = all(_is_asked(part, [own for _, own in join.on]) for part in right)
    if len(on) == len(left) == len(right) == len(join.on) and covers_left and covers_right:
        places = {one: other for one, other in on}
        return tuple(_merged(join, one, places[one]) for one in left)
    if covers_right and not join.keeps_right:
        return left
    if covers_left and not join.keeps_left:
        return right
    return left + right


def _is_asked(part: Part, sides: list[str]) -> bool:
    return any(spelling in sides for spelling in _spelled(part))


def _merged(join: TableJoin, left: Part, right: Part) -> Part:
    equal = {
        "INNER": left.equal | right.equal,
        "LEFT": left.equal,
        "RIGHT": right.equal,
        "FULL": frozenset[Use](),
    }[join.kind]
    return Part(left.columns + right.columns, equal)


def _part(use: Use) -> Part:
    return Part((use,), frozenset({use}))


def _spelled(part: Part) -> list[str]:
    return [f'"{alias}"."{column}"' for alias, column in part.equal]
