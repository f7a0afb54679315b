"""A SELECT with everything below it merged into it, and how that is frozen into its shape."""

from dataclasses import dataclass, field

from sqlglot import exp

from kaflow_engine.sql.scope import to_expr
from kaflow_engine.sql.shape import (
    Expr,
    JoinShape,
    OutputShape,
    QueryShape,
    SourceShape,
    UnnestShape,
)
from kaflow_engine.sql.streamable import line_of


@dataclass(kw_only=True)
class Lists:
    """Lists that are unnested side by side, their columns resolved."""

    alias: str = ""
    lists: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])


@dataclass(kw_only=True)
class Flat:
    """A SELECT with everything below it merged into it."""

    sources: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    filters: dict[str, list[exp.Expr]] = field(default_factory=dict[str, list[exp.Expr]])
    joins: list[JoinShape] = field(default_factory=list[JoinShape])
    where: list[exp.Expr] = field(default_factory=list[exp.Expr])
    outputs: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    unnests: list[Lists] = field(default_factory=list[Lists])
    record: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    """Record columns of its rows: those of the driving record, and a key of its own."""
    key: str | None = None
    """The output that gives its rows another key: `AS _key`."""
    aliases: set[str] = field(default_factory=set[str])
    """Names that sources have, and lists that are unnested, in lower case."""
    line: int | None = None
    """Where it stands."""

    @property
    def values(self) -> dict[str, exp.Expr]:
        """The outputs that are no key."""
        return {name: tree for name, tree in self.outputs.items() if name != self.key}

    def unique(self, alias: str) -> str:
        """Return an alias that nothing has, made from the name that its author gave it."""
        name, number = alias.replace(".", "_"), 2
        while name.lower() in self.aliases:
            name, number = f"{alias.replace('.', '_')}_{number}", number + 1
        self.aliases.add(name.lower())
        return name

    def shape(self) -> QueryShape:
        """Return it as frozen data."""
        return QueryShape(
            sources=tuple(
                SourceShape(alias=alias, topic=topic, filter=_frozen(self.filters.get(alias, [])))
                for alias, topic in self.sources
            ),
            joins=tuple(self.joins),
            where=_frozen(self.where),
            outputs=tuple(
                OutputShape(name=name, expr=frozen(tree), is_key=name == self.key)
                for name, tree in self.outputs.items()
            ),
            unnests=tuple(
                UnnestShape(
                    alias=each.alias,
                    lists=tuple((name, frozen(tree)) for name, tree in each.lists.items()),
                )
                for each in self.unnests
            ),
        )


def frozen(tree: exp.Expr) -> Expr:
    """Return an expression as frozen data."""
    return to_expr(tree, line_of(tree))


def _frozen(trees: list[exp.Expr]) -> tuple[Expr, ...]:
    return tuple(frozen(tree) for tree in trees)
