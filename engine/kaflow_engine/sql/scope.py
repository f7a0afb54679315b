"""Names in scope while a query is read: topics, derived tables, and the columns behind them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.model.record_columns import RECORD_COLUMNS, record_columns
from kaflow_engine.sql.shape import BATCH_TIME, MATCHED, Expr
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import DIALECT, at_line
from kaflow_engine.sql.types.operands import in_place_of

Schemas = Callable[[str], tuple[Column, ...] | None]
"""The columns of a topic, or None where they are not known yet."""


class UnknownColumn(SqlError):
    """A column that a query names and no source has."""

    meant: tuple[str, ...] = ()
    """What it may be called."""


class NeedsSchema(SqlError):
    """A query that cannot be read before the columns of some topics are known."""

    def __init__(self, topics: Sequence[str], at: Location | None) -> None:
        self.topics = tuple(sorted(set(topics)))
        names = ", ".join(f"'{topic}'" for topic in self.topics)
        super().__init__(
            f"the columns of topic {names} are not known yet",
            at,
            "declare them under topics: <topic>: columns:, or let the topic have a first record",
        )


@dataclass(kw_only=True)
class Relation:
    """A name after FROM or JOIN: a topic under a unique alias, or what a derived table gives."""

    alias: str
    topics: tuple[str, ...]
    outputs: dict[str, exp.Expr] | None
    """Expressions by name; None for a topic whose columns are not known yet."""
    base: str
    """The alias of the source it reads (of the driving one, for a derived join)."""
    record: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    """Record columns, no part of `*`; of a derived table those of the driving record."""
    present: exp.Expr | None = None
    """Of a table what is true where it has a row, for rows of a join may lack it."""

    def own(self, name: str) -> exp.Expr | None:
        """Return what stands behind the name of a column that is part of `*`, or None."""
        if self.outputs is None:
            return _slot(self.base, name)
        return _named(self.outputs, name)

    def column(self, name: str) -> exp.Expr | None:
        """Return what stands behind a column name, or None."""
        own = self.own(name)
        return own if own is not None else _named(self.record, name)


def named_by(select: exp.Select) -> dict[str, str]:
    """Return the names that a SELECT gives its columns, in lower case, each with the way out of
    reading it in that SELECT.
    """
    again, around = "write the expression behind it again", "read it in a SELECT around this one"
    return {
        part.alias.lower(): around if part.find(exp.Explode) else again
        for part in select.expressions
        if part.alias
    }


def topic_relation(
    alias: str, unique: str, topic: str, columns: tuple[Column, ...] | None
) -> Relation:
    """Build the relation of a topic."""
    outputs: dict[str, exp.Expr] | None = None
    if columns is not None:
        outputs = {column.name: _slot(unique, column.name) for column in columns}
    beside = RECORD_COLUMNS if columns is None else record_columns(columns)
    record = {column.name: _slot(unique, column.name) for column in beside}
    return Relation(alias=alias, topics=(topic,), outputs=outputs, base=unique, record=record)


@dataclass(kw_only=True)
class Scope:
    """The relations of one SELECT, in the order in which `*` shows them."""

    at: Location | None
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names that this SELECT gives its columns, in lower case, and the way out."""
    relations: list[Relation] = field(default_factory=list[Relation])
    merged: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    """Columns merged by USING: lower-case name to the preserved side's expression."""
    outer: "Scope | None" = None
    """Of a LATERAL: where names are looked up that it does not have itself."""
    unnest: Callable[[exp.Explode], exp.Expr] | None = None
    """Gives what stands for an element of `unnest(…)`; None where none may stand."""

    def add(self, relation: Relation, node: exp.Expr) -> None:
        """Add a relation; its alias must be new."""
        if any(known.alias.lower() == relation.alias.lower() for known in self.relations):
            raise SqlError(
                f"the name '{relation.alias}' stands twice after FROM and JOIN",
                at_line(self.at, line_of(node)),
                "give one of them another alias",
            )
        self.relations.append(relation)

    def resolve(self, expression: exp.Expr) -> exp.Expr:
        """Replace every column by what stands behind it."""
        return expression.copy().transform(self._column, copy=False)

    def star(self, node: exp.Expr, table: str | None) -> dict[str, exp.Expr]:
        """Expand `*` or `alias.*`, USING columns once."""
        found: dict[str, exp.Expr] = {}
        for relation in self.relations if table is None else [self._relation(table, node)]:
            if relation.outputs is None:
                raise NeedsSchema(relation.topics, at_line(self.at, line_of(node)))
            for name, expression in relation.outputs.items():
                merged = self.merged.get(name.lower()) if table is None else None
                if merged is not None and name.lower() in {known.lower() for known in found}:
                    continue
                if name.lower() in {known.lower() for known in found}:
                    raise self._duplicate(name, node)
                found[name] = (merged if merged is not None else expression).copy()
        return found

    def _duplicate(self, name: str, node: exp.Expr) -> SqlError:
        return SqlError(
            f"two output columns are called '{name}'",
            at_line(self.at, line_of(node)),
            "name the columns instead of *, and give one of them another name with AS",
        )

    def _column(self, node: exp.Expr) -> exp.Expr:
        if is_now(node):
            return _pinned(node)
        called, fields = _unnested(node)
        if called is not None and self.unnest is not None:
            return _nested(self.unnest(called), fields)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return node
        parts = [str(part.name) for part in node.parts]
        if self.outer is not None and not self._knows(parts):
            return self.outer.resolve(node)
        if len(parts) > 1 and any(r.alias.lower() == parts[0].lower() for r in self.relations):
            relation = self._relation(parts[0], node)
            found = relation.column(parts[1])
            if found is None:
                raise self._unknown(parts[1], [relation], node)
            return in_place_of(node, _nested(found, parts[2:]))
        if len(parts) > 1 and not self._has(parts[0]) and parts[0].lower() not in self.named:
            raise UnknownName(
                "table or alias",
                parts[0],
                [r.alias for r in self.relations],
                at_line(self.at, line_of(node)),
            )
        return in_place_of(node, _nested(self._unqualified(parts[0], node), parts[1:]))

    def _knows(self, parts: Sequence[str]) -> bool:
        aliases = {r.alias.lower() for r in self.relations}
        return self._has(parts[0]) or (len(parts) > 1 and parts[0].lower() in aliases)

    def _has(self, name: str) -> bool:
        return any(r.column(name) is not None for r in self.relations)

    def _unqualified(self, name: str, node: exp.Expr) -> exp.Expr:
        if name.lower() in self.merged:
            return self.merged[name.lower()].copy()
        known = [r for r in self.relations if r.outputs is not None and r.own(name) is not None]
        unknown = [r for r in self.relations if r.outputs is None]
        if not known:  # whatever columns a topic has, it has those of its records
            beside = [r for r in self.relations if _named(r.record, name) is not None]
            if unknown and len(beside) > 1:
                raise self._needs_columns(unknown, node)
            known = beside
        if len(known) > 1:
            raise SqlError(
                f"the column '{name}' is ambiguous",
                at_line(self.at, line_of(node)),
                "write " + " or ".join(f"{r.alias}.{name}" for r in known),
            )
        if known:
            return _found(known[0].column(name))
        if len(unknown) == 1:
            return _found(unknown[0].column(name))
        if unknown:
            raise self._needs_columns(unknown, node)
        raise self._unknown(name, self.relations, node)

    def _needs_columns(self, unknown: list[Relation], node: exp.Expr) -> NeedsSchema:
        topics = [topic for relation in unknown for topic in relation.topics]
        return NeedsSchema(topics, at_line(self.at, line_of(node)))

    def _relation(self, alias: str, node: exp.Expr) -> Relation:
        for relation in self.relations:
            if relation.alias.lower() == alias.lower():
                return relation
        known = [relation.alias for relation in self.relations]
        raise UnknownName("table or alias", alias, known, at_line(self.at, line_of(node)))

    def _unknown(self, name: str, among: list[Relation], node: exp.Expr) -> UnknownColumn:
        known = [column for r in among for column in (r.outputs or {})]
        where = f" in '{among[0].alias}'" if len(among) == 1 else ""
        record = {column for r in among for column in r.record}
        near = (column for column in record if name.startswith("_") or column == f"_{name}")
        cause = UnknownName("column", name, [*known, *near])
        hint = cause.hint or ("known: " + ", ".join(known[:30]) if known else None)
        if len(among) == len(self.relations) and name.lower() in self.named:
            hint = f"this SELECT gives '{name}' its name; {self.named[name.lower()]}"
        found = UnknownColumn(
            f"unknown column '{name}'{where}", at_line(self.at, line_of(node)), hint
        )
        found.meant = (cause.nearest,) if cause.nearest else tuple(known)
        return found


def to_expr(tree: exp.Expr, line: int | None = None) -> Expr:
    """Freeze a resolved expression."""
    uses: set[tuple[str, str]] = set()
    for column in tree.find_all(exp.Column):
        alias, _, name = column.name.partition(".")
        if column.name != BATCH_TIME:
            uses.add((alias, name))
    return Expr(sql=tree.sql(dialect=DIALECT), uses=tuple(sorted(uses)), line=line)


def element(alias: str, name: str) -> exp.Expr:
    """Return the expression that an element of an unnested list is."""
    return _slot(alias, name)


def matched(alias: str) -> exp.Expr:
    """Return the expression that is true where a joined side has a match."""
    return _slot(alias, MATCHED)


def _named(columns: dict[str, exp.Expr], name: str) -> exp.Expr | None:
    for known, expression in columns.items():
        if known.lower() == name.lower():
            return expression.copy()
    return None


def _slot(alias: str, name: str) -> exp.Expr:
    return exp.column(exp.to_identifier(f"{alias}.{name}", quoted=True))


def _found(expression: exp.Expr | None) -> exp.Expr:
    assert expression is not None
    return expression


def _nested(expression: exp.Expr, fields: list[str]) -> exp.Expr:
    for name in fields:
        expression = exp.func("struct_extract", expression, exp.Literal.string(name))
    return expression


def _unnested(node: exp.Expr) -> tuple[exp.Explode | None, list[str]]:
    """Return the call of `unnest(…).a.b`, and the names of the fields."""
    fields: list[str] = []
    while isinstance(node, exp.Dot):
        fields.append(node.expression.name)
        node = node.this
    node = node.unnest() if fields else node
    return (node, fields[::-1]) if isinstance(node, exp.Explode) else (None, [])


def is_now(node: exp.Expr) -> bool:
    """Tell whether a call gives the present time."""
    kinds = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.CurrentDatetime)
    names = {"now", "get_current_timestamp", "transaction_timestamp", "today", "localtimestamp"}
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in names
    return isinstance(node, kinds) or type(node).__name__ in {"Localtimestamp", "Localtime"}


def _pinned(node: exp.Expr) -> exp.Expr:
    now = exp.column(exp.to_identifier(BATCH_TIME, quoted=True))
    name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
    if name in {"currentdate", "today"}:
        return exp.cast(now, "DATE", dialect=DIALECT)
    if name in {"currenttime", "localtime"}:
        return exp.cast(exp.cast(now, "TIMESTAMP", dialect=DIALECT), "TIME", dialect=DIALECT)
    if name in {"localtimestamp", "currentdatetime"}:
        return exp.cast(now, "TIMESTAMP", dialect=DIALECT)
    return now
