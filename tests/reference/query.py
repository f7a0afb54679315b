"""Plain SQL in the oracle's terms: columns, equalities, and conditions on one column.

This is a reader for tests, made for tidy queries; it does not say what is wrong with others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp, parse_one

from tests.reference.conditions import (
    AllOf,
    AnyOf,
    Call,
    Column,
    Compare,
    Condition,
    IsNull,
    Negated,
    Term,
)
from tests.reference.pipeline import Join, Output


class NotExpressible(Exception):
    """A query that the oracle cannot be told about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, read."""

    driving: str
    driving_topic: str
    joins: tuple[Join, ...]
    select: tuple[Output, ...]
    where: tuple[Condition, ...]
    sets_key: bool
    """The select list has `AS _key`."""


_OF_RECORDS = {"_key", "_topic", "_partition", "_offset"}
"""Columns that every record has; others are no plain values."""
_OPS: dict[type[Any], tuple[Any, Any]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
    exp.NullSafeNEQ: ("IS DISTINCT FROM", "IS DISTINCT FROM"),
    exp.NullSafeEQ: ("IS NOT DISTINCT FROM", "IS NOT DISTINCT FROM"),
}
"""Node to operator, and to the operator with its sides exchanged."""


def read_query(sql: str, columns: Mapping[str, Sequence[str]]) -> Query:
    """Read a query over topics with the given columns.

    Raises:
        NotExpressible: for anything beyond plain columns, equalities and simple conditions.
    """
    tree = parse_one(sql, dialect="duckdb")
    if not isinstance(tree, exp.Select) or tree.ctes or tree.find(exp.Subquery):
        raise NotExpressible(sql)
    return _Reader(tree, columns).read()


class _Reader:
    def __init__(self, tree: exp.Select, columns: Mapping[str, Sequence[str]]) -> None:
        self._tree = tree
        self._columns = columns
        self._topics: dict[str, str] = {}
        self._preserved: dict[str, Column] = {}

    def read(self) -> Query:
        tables = [self._tree.args["from_"].this, *(join.this for join in self._joins())]
        for table in tables:
            name = ".".join(part.name for part in table.parts)
            self._topics[table.alias_or_name] = name
        order = list(self._topics)
        if any(join.side == "RIGHT" for join in self._joins()):
            order.reverse()
        joins: list[Join] = []
        for join in self._joins():
            new = order[1] if join.side == "RIGHT" else join.this.alias_or_name
            pairs = self._pairs(join, new, [order[0], *(each.alias for each in joins)])
            kind = join.side or join.kind or "INNER"
            if kind not in {"LEFT", "RIGHT", "INNER"}:
                raise NotExpressible(kind)
            joins.append(Join(alias=new, topic=self._topics[new], on=pairs, inner=kind == "INNER"))
        where = self._tree.args.get("where")
        return Query(
            driving=order[0],
            driving_topic=self._topics[order[0]],
            joins=tuple(joins),
            select=tuple(output for item in self._tree.expressions for output in self._item(item)),
            where=tuple(self._condition(part) for part in where.this.flatten())
            if where is not None and isinstance(where.this, exp.And)
            else (() if where is None else (self._condition(where.this),)),
            sets_key=any(item.alias == "_key" for item in self._tree.expressions),
        )

    def _joins(self) -> list[exp.Join]:
        return self._tree.args.get("joins") or []

    def _pairs(self, join: exp.Join, new: str, before: list[str]) -> tuple[tuple[Term, Term], ...]:
        if using := join.args.get("using"):
            found: list[tuple[Term, Term]] = []
            for identifier in using:
                name = identifier.name
                holder = next(a for a in before if self._has(a, name))
                self._preserved.setdefault(name, Column(holder, name))
                found.append((self._preserved[name], Column(new, name)))
            return tuple(found)
        condition = join.args.get("on")
        if condition is None:
            raise NotExpressible(join.sql())
        parts = condition.flatten() if isinstance(condition, exp.And) else [condition]
        return tuple(self._pair(part, new) for part in parts)

    def _pair(self, part: exp.Expr, new: str) -> tuple[Term, Term]:
        if not isinstance(part, exp.EQ):
            raise NotExpressible(part.sql())
        left, right = self._term(part.this), self._term(part.expression)
        return (right, left) if left.alias == new else (left, right)

    def _term(self, node: exp.Expr) -> Term:
        match node:
            case exp.Paren():
                return self._term(node.this)
            case exp.Coalesce() if len(node.expressions) == 1:
                return Call("coalesce", self._column(node.this), _literal(node.expressions[0]))
            case exp.Upper():
                return Call("upper", self._column(node.this))
            case exp.Add():
                return Call("plus", self._column(node.this), _literal(node.expression))
            case exp.Cast() if node.to.is_type("BIGINT"):
                return Call("integer", self._column(node.this))
            case _:
                return self._column(node)

    def _column(self, node: exp.Expr) -> Column:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise NotExpressible(node.sql())
        if node.table and self._has(node.table, node.name):
            return Column(node.table, node.name)
        if node.name in self._preserved:
            return self._preserved[node.name]
        own = [a for a, topic in self._topics.items() if node.name in self._columns[topic]]
        holders = own or [alias for alias in self._topics if self._has(alias, node.name)]
        if node.table or len(holders) != 1:
            raise NotExpressible(node.sql())
        return Column(holders[0], node.name)

    def _has(self, alias: str, name: str) -> bool:
        return name in self._columns[self._topics[alias]] or name in _OF_RECORDS

    def _item(self, item: exp.Expr) -> list[Output]:
        if isinstance(item, exp.Star):
            shown: list[Output] = []
            for alias, topic in self._topics.items():
                for name in self._columns[topic]:
                    column = self._preserved.get(name, Column(alias, name))
                    if name not in {output.name for output in shown}:
                        shown.append(Output(name=name, term=column))
            return shown
        name, node = item.alias_or_name, item.unalias()
        return [Output(name=name, term=self._term(node))]

    def _condition(self, node: exp.Expr) -> Condition:
        match node:
            case exp.Paren():
                return self._condition(node.this)
            case exp.And():
                return AllOf(tuple(self._condition(part) for part in node.flatten()))
            case exp.Or():
                return AnyOf(tuple(self._condition(part) for part in node.flatten()))
            case exp.Not(this=exp.Is() as inner):
                return IsNull(self._column(inner.this), negated=True)
            case exp.Not():
                return Negated(self._condition(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self._column(node.this))
            case exp.Binary() if type(node) in _OPS:
                straight, turned = _OPS[type(node)]
                if isinstance(node.this, exp.Column):
                    return Compare(self._column(node.this), straight, _literal(node.expression))
                return Compare(self._column(node.expression), turned, _literal(node.this))
            case _:
                raise NotExpressible(node.sql())


def _literal(node: exp.Expr) -> Any:
    match node:
        case exp.Literal():
            return node.this if node.is_string else _number(str(node.this))
        case exp.Neg(this=exp.Literal() as inner):
            return -_number(str(inner.this))
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case _:
            raise NotExpressible(node.sql())


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
