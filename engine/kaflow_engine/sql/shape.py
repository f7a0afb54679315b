"""What a query says, as frozen data: sources, joins, filters and outputs over topic columns.

In every expression a column of a source is one quoted identifier, `"alias.column"`; so is an
element of an unnested list. Two names are the engine's own: `"alias.$matched"` is true where a
joined side has a match, and `"$batch_time"` is the batch time as TIMESTAMPTZ.
"""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.flow.windows import Window
from kaflow_engine.model.record_columns import Role
from kaflow_engine.model.spec import Path
from kaflow_engine.sql.groups.shapes import AppendShape, RunShape, TransformShape

MATCHED = "$matched"
BATCH_TIME = "$batch_time"
ROW = "$row"
"""What stands before the name of an argument in the SQL of a call: `"$row.<name>"`."""

HERE = "$here"
"""The column of groups that are joined to tables which is never NULL."""

JoinKind = Literal["LEFT", "INNER", "RIGHT", "FULL", "ANTI"]
"""RIGHT and FULL are of tables; ANTI: rows that match nothing, half of a FULL JOIN of events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """A DuckDB expression over columns of the query's sources."""

    sql: str
    uses: tuple[tuple[str, str], ...]
    """The (alias, column) pairs it reads, sorted; `$batch_time` is not among them."""
    line: int | None = None
    """The line of the SQL text on which it stands, from 1."""
    meaning: str | None = None
    """What it is to people, where that is not its SQL."""

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
    table: bool = False
    """The topic is read as a table: the last record of a key is its row."""
    reading: str | None = None
    """The relation that says how the topic is read; None: it is read under its own name."""
    changes: bool = False
    """Its records are changes of rows with a key; where the engine keeps these, it is a table."""
    key: tuple[str, ...] = ()
    """Of a dimension that is joined to tables the columns of its key: those of the join."""
    query: "QueryShape | None" = None
    """Whose groups are joined, whose rows drive, or the table that other columns look up."""
    called: str = ""
    """What the author calls these groups, or that table."""
    once: bool = False
    """It is groups that are joined, whose rows leave once: events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """One equality of a join condition: what was read before, and the joined side."""

    outer: Expr
    inner: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinShape:
    """One joined side, as its author calls it (of one that was turned: the other), and its key."""

    alias: str
    called: str = ""
    kind: JoinKind
    keys: tuple[KeyPair, ...]
    line: int | None = None
    turned: bool = False
    """The joined side was written first, before a RIGHT JOIN."""
    several: bool = False
    """Events look up all rows with the key of the join, which is not the key of these rows."""
    asks: str | None = None
    """The dynamic table that it is, which events see as it was before their own record."""


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
    role: Role = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallShape:
    """One call of an aggregate function, such as `count(DISTINCT x) FILTER (WHERE y > 0)`."""

    name: str
    """What its result is called; no author writes such a name."""
    function: str
    """As DuckDB calls it, in lower case; `count_star` without an argument."""
    arguments: tuple[tuple[str, Expr], ...]
    """What it reads of a row, by name: arguments, then what ORDER BY and FILTER read."""
    sql: str
    """The call over identifiers `"$row.<name>"`."""
    plain: bool
    """Without DISTINCT and ORDER BY."""
    filter: str | None
    """The name among the arguments that FILTER asks for."""
    meaning: str | None = None
    """What it is in words, where the author wrote no call, over columns as `sql` of an `Expr`."""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShape:
    """A GROUP BY over the rows before it: of the sources and joins, or of another GROUP BY."""

    alias: str
    """Of its rows, whose columns are `alias.<key>`, `alias.<call>`, and those of the window."""
    keys: tuple[tuple[str, Expr], ...]
    """What a grouping value is called, and what it is; without the window."""
    window: Window | None
    passed_on: bool = False
    """The window is that of the rows before it, as they name it."""
    window_of: Expr | None = None
    """What names the window, where it is an expression like others over rows that change."""
    window_at: int = 0
    """How many grouping values stand before it."""
    calls: tuple[CallShape, ...]
    where: tuple[Expr, ...]
    """Conjuncts over its rows: HAVING, and WHERE of a query around it."""
    distinct: bool = False
    """It is made of DISTINCT: its row is the first of equal rows, and no later one changes it."""
    named: tuple[tuple[str, str], ...] = ()
    """Of each grouping value in the order of GROUP BY, a window last: what the result calls it, or
    its SQL; and its name among the keys, `window_start` of a window."""
    line: int | None = None
    run: RunShape | None = None
    """Made of runs: its keys are what is selected of a row, its columns those of SQL over a run."""
    append: AppendShape | None = None
    """Made of changes of a table: its keys are the columns of that, under their names."""
    transform: TransformShape | None = None
    """Made by a transform: its keys are what comes in, and the record columns that go past."""
    beside: tuple["QueryShape", ...] = ()
    """Other branches of a UNION ALL, whose rows it takes, too: each ends with it, in own words."""
    timed: bool = False
    """Its rows have their event time as a column `alias._time`."""
    branch: int = 0
    """Which branch that is: the same SELECT may stand there twice."""

    @property
    def appends(self) -> bool:
        """Whether its rows leave once and need no window."""
        return self.distinct or self.is_made

    @property
    def is_made(self) -> bool:
        """Whether no GROUP BY or DISTINCT makes it."""
        return any((self.run, self.append, self.transform))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Over the rows before it: its keys, and what its calls read."""
        read = (expr for call in self.calls for _, expr in call.arguments)
        return (*(expr for _, expr in self.keys), *read)

    def behind(self, name: str) -> tuple[Expr, ...]:
        """Return the expressions of which a column of its rows is made; none of a window."""
        if self.run is not None:
            return tuple(expr for _, expr in self.keys)  # any row of a run may be in any result
        if self.transform is not None:
            return self.transform.behind(name, self.keys)
        keys = (expr for key, expr in self.keys if key == name)
        read = (expr for call in self.calls if call.name == name for _, expr in call.arguments)
        return (*keys, *read)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """A query that streams: the first source drives, the others are joined to it in order.

    Where the first source is a table, all are, and so is the result.
    """

    sources: tuple[SourceShape, ...]
    joins: tuple[JoinShape, ...]
    where: tuple[Expr, ...]
    """Conjuncts of the filter."""
    outputs: tuple[OutputShape, ...]
    unnests: tuple[UnnestShape, ...] = ()
    """Of the joined rows, one after the other: a later one may read elements of those before it."""
    groups: tuple[GroupShape, ...] = ()
    """Of the rows that pass `where`, one behind the other; `outputs` are over the rows of the last
    one."""
    said_at: Path = ()
    """Where it stands when joined rows leave: at a relation or an output; () of the pipeline."""
    discriminator: OutputShape | None = None
    """Of a branch of a UNION ALL of tables: a literal that no other one has, part of its key."""
    row_key: Expr | None = None
    """What `_key` means of its rows; None: they have none."""

    @property
    def driving(self) -> SourceShape:
        """The source whose records make rows."""
        return self.sources[0]

    @property
    def is_table(self) -> bool:
        """Whether rows replace each other before they are grouped: all sources are tables."""
        return self.driving.table

    @property
    def is_upsert(self) -> bool:
        """Whether rows replace others that are not known."""
        return self.driving.changes and not self.driving.table

    @property
    def key(self) -> OutputShape | None:
        """The column that is the key and no part of the value."""
        return next((each for each in self.outputs if each.role in ("key", "own_key")), None)

    @property
    def headers(self) -> OutputShape | None:
        """The column that has the headers of records, and is no part of the value."""
        return next((each for each in self.outputs if each.role == "headers"), None)

    def column(self, name: str) -> OutputShape | None:
        """Return a column of the result, in whatever case its name is written."""
        return next((o for o in self.outputs if o.name.lower() == name.lower()), None)

    @property
    def gathered(self) -> tuple[GroupShape, ...]:
        """Its groups, save for what only transforms rows."""
        return tuple(group for group in self.groups if group.transform is None)

    def key_of(self, named: str | tuple[str, ...] | None) -> OutputShape | None:
        """Return the column that is the key: the one of a name, or the one that says so itself."""
        return self.column(named) if isinstance(named, str) else self.key

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it reads itself, one for each source; the first drives."""
        return tuple(source.topic for source in self.read)

    @property
    def read(self) -> tuple[SourceShape, ...]:
        """The sources that are topics; the first drives."""
        return tuple(e for e in self.sources if e.query in (None, self.rows_of))

    @property
    def rows_of(self) -> "QueryShape | None":
        """The query whose groups' rows drive; None: records do, or it is a table."""
        return None if self.driving.table else self.driving.query

    def behind(self, alias: str, name: str) -> tuple[Expr, ...]:
        """Return of what a column is made that readers call so: of its groups, or of its table."""
        if self.groups:
            return self.groups[-1].behind(name)
        return () if name == MATCHED else (Expr(sql="", uses=((alias, name),)),)

    @property
    def looked_up(self) -> tuple["QueryShape", ...]:
        """The queries whose rows are joined, each behind those that it looks up itself."""
        found = (source.query for source in self.sources if source.query is not None)
        return tuple(each for query in found for each in (*query.looked_up, query))

    @property
    def beside(self) -> tuple["QueryShape", ...]:
        """The other branches of unions whose rows its groups take."""
        return tuple(each for group in self.groups for each in group.beside)

    @property
    def below(self) -> tuple["QueryShape", ...]:
        """The queries that it looks up, and those beside it; each behind those below it."""
        found = (*(e.query for e in self.sources if e.query is not None), *self.beside)
        return tuple(dict.fromkeys(each for query in found for each in (*query.below, query)))

    def source(self, alias: str) -> SourceShape:
        """Return the source called `alias`."""
        return next(source for source in self.sources if source.alias == alias)
