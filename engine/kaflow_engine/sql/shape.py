"""What a query says, as frozen data: sources, joins, filters and outputs over topic columns.

In every expression a column of a source is one quoted identifier, `"alias.column"`; so is an
element of an unnested list. Two names are the engine's own: `"alias.$matched"` is true where a
joined side has a match, and `"$batch_time"` is the batch time as TIMESTAMPTZ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MATCHED = "$matched"
BATCH_TIME = "$batch_time"

JoinKind = Literal["LEFT", "INNER"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """A DuckDB expression over columns of the query's sources."""

    sql: str
    uses: tuple[tuple[str, str], ...]
    """The (alias, column) pairs it reads, sorted; `$batch_time` is not among them."""
    line: int | None = None
    """The line of the SQL text on which it stands, from 1."""

    @property
    def aliases(self) -> frozenset[str]:
        """The sources it reads."""
        return frozenset(alias for alias, _ in self.uses)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceShape:
    """A topic under its alias, with the filter of the derived table it came from."""

    alias: str
    topic: str
    filter: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """One equality of a join condition: what was read before, and the joined side."""

    outer: Expr
    inner: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinShape:
    """One joined side and its key."""

    alias: str
    kind: JoinKind
    keys: tuple[KeyPair, ...]
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnestShape:
    """Lists unnested side by side: one row for each place, NULL where a list is shorter."""

    alias: str
    lists: tuple[tuple[str, Expr], ...]
    """What an element is called, and the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputShape:
    """One column of the result."""

    name: str
    expr: Expr
    is_key: bool = False
    """The key of the output record, and no part of its value: `AS _key`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """A query that streams: the first source drives, the others are joined to it in order."""

    sources: tuple[SourceShape, ...]
    joins: tuple[JoinShape, ...]
    where: tuple[Expr, ...]
    """Conjuncts of the filter."""
    outputs: tuple[OutputShape, ...]
    unnests: tuple[UnnestShape, ...] = ()
    """Of the joined rows, one after the other: a later one may read elements of those before it."""

    @property
    def driving(self) -> SourceShape:
        """The source whose records make rows."""
        return self.sources[0]

    @property
    def key(self) -> OutputShape | None:
        """The column that is the key and no part of the value."""
        return next((output for output in self.outputs if output.is_key), None)

    def column(self, name: str) -> OutputShape | None:
        """Return a column of the result, in whatever case its name is written."""
        return next((o for o in self.outputs if o.name.lower() == name.lower()), None)

    def key_of(self, name: str | None) -> OutputShape | None:
        """Return the column that is the key: the one of a name, or the one that says so itself."""
        return self.key if name is None else self.column(name)

    def source(self, alias: str) -> SourceShape:
        """Return the source called `alias`."""
        return next(source for source in self.sources if source.alias == alias)

    def lists_behind(self, expr: Expr) -> tuple[Expr, ...]:
        """Return the lists, over sources alone, of whose elements an expression is made."""
        found = [self._lists[use] for use in expr.uses if use in self._lists]
        return tuple(own for of in found for own in (self.lists_behind(of) or (of,)))

    def reads(self, expr: Expr) -> frozenset[tuple[str, str]]:
        """Return the (alias, column) pairs of sources that an expression reads, also by lists."""
        own = frozenset(use for use in expr.uses if use not in self._lists)
        through = (self.reads(self._lists[use]) for use in expr.uses if use in self._lists)
        return own.union(*through)

    @property
    def _lists(self) -> dict[tuple[str, str], Expr]:
        return {(each.alias, name): of for each in self.unnests for name, of in each.lists}


def common_key(keys: Sequence[OutputShape | None]) -> OutputShape | None:
    """Return the key of all outputs; None where one has none, or another one."""
    first = keys[0]
    if first is None:
        return None
    same = all(key is not None and key.expr.sql == first.expr.sql for key in keys)
    return first if same else None


def common_filters(shapes: Sequence[QueryShape]) -> tuple[Expr, ...]:
    """Return the filters of the first query that every other one has, too; none reads elements."""
    first, *others = shapes
    elements = {each.alias for each in first.unnests}
    texts = [{part.sql for part in shape.where} for shape in others]
    return tuple(
        part
        for part in first.where
        if not part.aliases & elements and all(part.sql in known for known in texts)
    )
