"""A SELECT with everything below it merged into it, and how that is frozen into its shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from kaflow_engine.flow.windows import Window
from kaflow_engine.model.record_columns import KEY, ROLES, Role
from kaflow_engine.sql.groups.row_times import with_row_times
from kaflow_engine.sql.scope import element, to_expr
from kaflow_engine.sql.shape import (
    AppendShape,
    CallShape,
    Expr,
    GroupShape,
    JoinShape,
    OutputShape,
    QueryShape,
    RunShape,
    SourceShape,
    TransformShape,
    UnnestShape,
)
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.transforms.used_columns import with_used_columns


@dataclass(kw_only=True)
class Lists:
    """Lists that are unnested side by side, their columns resolved."""

    alias: str = ""
    lists: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])


@dataclass(kw_only=True)
class Group:
    """A GROUP BY, its columns resolved."""

    alias: str
    keys: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    window: Window | None = None
    passed_on: bool = False
    window_of: exp.Expr | None = None
    """What names the window, where that is no call of a window function."""
    window_at: int = 0
    """How many grouping values stand before it."""
    changes: bool = False
    """Its rows replace each other although it has a window: they leave before that is closed."""
    calls: list[CallShape] = field(default_factory=list[CallShape])
    where: list[exp.Expr] = field(default_factory=list[exp.Expr])
    named: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    line: int | None = None
    distinct: bool = False
    run: RunShape | None = None
    append: AppendShape | None = None
    transform: TransformShape | None = None
    beside: list["Flat"] = field(default_factory=list["Flat"])
    """Other branches of the union that is grouped: each ends with this GROUP BY of its own rows."""
    branch: int = 0
    """Which branch of the union it takes."""

    @property
    def appends(self) -> bool:
        """Whether its rows leave once and need no window."""
        made = (self.run, self.append, self.transform)
        return self.distinct or any(each is not None for each in made)

    def column(self, name: str) -> exp.Expr:
        """Return the expression that a column of its rows is."""
        return element(self.alias, name)

    def key(self, outputs: Mapping[str, exp.Expr]) -> exp.Expr | None:
        """Return what the key of its rows is: its grouping value, or a STRUCT of several under the
        names that outputs give them, a window last; None: it has none."""
        values = [self.column(key) for _, key in self.named]
        if len(values) < 2:
            return next(iter(values), None)
        fields = (
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value)
            for name, value in zip(self._called(outputs), values, strict=True)
        )
        return exp.Struct(expressions=list(fields))

    def _called(self, outputs: Mapping[str, exp.Expr]) -> list[str]:
        """Return the names that outputs give its grouping values, a window last."""
        names = {tree: name for name, tree in reversed(list(outputs.items()))}
        called = [names.get(self.column(key), said) for said, key in self.named if key in self.keys]
        return called + [said for said, key in self.named if key not in self.keys]

    def shape(self, outputs: Mapping[str, exp.Expr]) -> GroupShape:
        """Return it as frozen data, under the names that outputs give its grouping values."""
        called = self._called(outputs)
        return GroupShape(
            alias=self.alias,
            keys=tuple((name, frozen(tree)) for name, tree in self.keys.items()),
            window=self.window,
            passed_on=self.passed_on,
            window_of=None if self.window_of is None else frozen(self.window_of),
            window_at=self.window_at,
            calls=tuple(self.calls),
            where=_frozen(self.where),
            distinct=self.distinct,
            run=self.run,
            append=self.append,
            transform=self.transform,
            named=tuple(zip(_unique(called), (name for _, name in self.named), strict=True)),
            line=self.line,
            beside=tuple(each.shape() for each in self.beside),
            branch=self.branch,
        )


@dataclass(kw_only=True)
class Flat:
    """A SELECT with everything below it merged into it."""

    sources: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    queries: dict[str, QueryShape] = field(default_factory=dict[str, QueryShape])
    """Those whose groups are looked up, by the aliases of sources."""
    readings: dict[str, str] = field(default_factory=dict[str, str])
    """The relations by whose names sources are read, by the aliases of these."""
    called: dict[str, str] = field(default_factory=dict[str, str])
    """What the author calls groups that are joined, by the aliases of sources."""
    once: set[str] = field(default_factory=set[str])
    """The aliases of joined groups whose rows leave once."""
    rows_of: "Flat | None" = None
    """Whose last groups are the first source: their rows look up what is joined; None: records do,
    or it is a table."""
    null_rows: bool = False
    """Null values of the topic that is its first source are rows of NULLs."""
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Of each source whose records are changes of rows the columns of their key."""
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Of each source that is a table the columns of its key."""
    dimensions: set[str] = field(default_factory=set[str])
    """The aliases of sources that are dimensions and no tables."""
    filters: dict[str, list[exp.Expr]] = field(default_factory=dict[str, list[exp.Expr]])
    joins: list[JoinShape] = field(default_factory=list[JoinShape])
    where: list[exp.Expr] = field(default_factory=list[exp.Expr])
    outputs: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    unnests: list[Lists] = field(default_factory=list[Lists])
    groups: list[Group] = field(default_factory=list[Group])
    record: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    """Record columns of its rows: those of the driving record, and a key of its own."""
    sets: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of each record column that its rows have another one of, the output: `AS _key`."""
    union_of: "Flat | None" = None
    """The first branch, where these are the rows of all branches of a union."""
    discriminator: tuple[str, exp.Expr] | None = None
    """Of a branch of a UNION ALL of tables: a column, and its literal, which no other one has."""
    alike: int | None = None
    """Of a branch of a UNION ALL of tables that has none: where the first branch stands."""
    aliases: set[str] = field(default_factory=set[str])
    """Names that sources have, and lists that are unnested, in lower case."""
    line: int | None = None
    """Where it stands."""

    @property
    def is_table(self) -> bool:
        """Whether rows replace each other before they are grouped: what drives them is a table, and
        its changes are no rows of their own."""
        appended = any(group.append is not None for group in self.groups)
        if self.union_of is not None:
            return self.union_of.is_table and not appended
        return bool(self.sources) and self.sources[0][0] in self.tables and not appended

    @property
    def is_dimension(self) -> bool:
        """Whether it is one dimension, that may become a table."""
        alone = len(self.sources) == 1 and not (self.groups or self.unnests)
        return alone and self.sources[0][0] in self.dimensions - self.tables.keys()

    @property
    def is_upsert(self) -> bool:
        """Whether rows before they are grouped replace others that are not known."""
        return bool(self.sources) and self.sources[0][0] in self.changes.keys() - self.tables.keys()

    @property
    def changes_rows(self) -> bool:
        """Whether its rows replace each other as they are now. Those of a window may, too: what a
        relation says of emission decides."""
        if not self.groups:
            return self.is_table if self.union_of is None else self.union_of.changes_rows
        last = self.groups[-1]
        return (last.window is None or last.changes) and not last.appends

    @property
    def is_of_records(self) -> bool:
        """Whether its rows are those of records, joined or transformed, and of no group."""
        transformed = all(group.transform is not None for group in self.groups)
        return transformed and (self.rows_of is None or self.rows_of.is_of_records)

    @property
    def first(self) -> str:
        """What the author calls the first source: a topic, or groups that are joined."""
        if self.union_of is not None:
            return self.union_of.first
        alias, topic = self.sources[0]
        return self.called.get(alias, topic)

    @property
    def values(self) -> dict[str, exp.Expr]:
        """The outputs that are neither key nor headers."""
        beside = set(self.sets.values())
        return {name: tree for name, tree in self.outputs.items() if name not in beside}

    @property
    def conditions(self) -> list[exp.Expr]:
        """Where conditions on its rows go."""
        return self.groups[-1].where if self.groups else self.where

    def unique(self, alias: str) -> str:
        """Return an alias that nothing has, made from the name that its author gave it."""
        name, number = alias.replace(".", "_"), 2
        while name.lower() in self.aliases:
            name, number = f"{alias.replace('.', '_')}_{number}", number + 1
        self.aliases.add(name.lower())
        return name

    def add_side(self, side: "Flat", alias: str) -> None:
        """Take over the sources of a joined side, which is called `alias`, and its filters."""
        self.sources.extend(side.sources)
        self.readings.update(side.readings)
        self.changes.update(side.changes)
        self.tables.update(side.tables)
        self.dimensions |= side.dimensions
        self.queries.update(side.queries)
        self.called.update(side.called)
        self.once |= side.once
        self.filters.update(side.filters)
        self.filters.setdefault(alias, []).extend(side.where)

    def whole_shape(self) -> QueryShape:
        """Return it as frozen data, with what `_key` means of its rows: an output writes it.

        Rows of groups are written with the group.
        """
        key = self.record.get(KEY) if self.is_of_records else None
        return replace(self.shape(), row_key=None if key is None else frozen(key))

    def shape(self) -> QueryShape:
        """Return it as frozen data."""
        roles: dict[str, Role] = {name: ROLES[column] for column, name in self.sets.items()}
        shape = QueryShape(
            sources=tuple(
                SourceShape(
                    alias=alias,
                    topic=topic,
                    filter=_frozen(self.filters.get(alias, [])),
                    query=self.queries.get(alias),
                    called=self.called.get(alias, ""),
                    once=alias in self.once,
                    table=alias in self.tables,
                    reading=self.readings.get(alias),
                    changes=alias in self.changes,
                    key=self.tables.get(alias, ()) if alias in self.dimensions else (),
                )
                for alias, topic in self.sources
            ),
            joins=tuple(self.joins),
            where=_frozen(self.where),
            outputs=tuple(
                OutputShape(name=name, expr=frozen(tree), role=roles.get(name, "value"))
                for name, tree in self.outputs.items()
            ),
            unnests=tuple(
                UnnestShape(
                    alias=each.alias,
                    lists=tuple((name, frozen(tree)) for name, tree in each.lists.items()),
                )
                for each in self.unnests
            ),
            groups=tuple(group.shape(self.outputs) for group in self.groups),
            discriminator=self.discriminator
            and OutputShape(name=self.discriminator[0], expr=frozen(self.discriminator[1])),
        )
        return with_used_columns(with_row_times(shape))


def _unique(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        number, own = 2, name
        while own in found:
            number, own = number + 1, f"{name}_{number}"
        found.append(own)
    return found


def frozen(tree: exp.Expr) -> Expr:
    """Return an expression as frozen data."""
    return to_expr(tree, line_of(tree))


def _frozen(trees: list[exp.Expr]) -> tuple[Expr, ...]:
    return tuple(frozen(tree) for tree in trees)
