"""Plain SQL in the oracle's terms: columns, equalities, and conditions on one column.

This is a reader for tests, made for tidy queries; it does not say what is wrong with others.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from tests.reference.beside import HEADERS
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
from tests.reference.full_joins import of_full_join
from tests.reference.grouped import GroupReader, is_grouped, parsed
from tests.reference.literals import literal
from tests.reference.pipeline import Chain, Join, Output, Unnest
from tests.reference.read_query import Query, read_headers
from tests.reference.unions import OF_RECORDS, Columns, NotExpressible, united

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


def read_query(
    sql: str, columns: Columns, relations: Mapping[str, str] | None = None
) -> tuple[Query, ...]:
    """Read a query over topics with the given columns, or over one of the given relations.

    Several are the branches of a UNION ALL.

    Raises:
        NotExpressible: for anything beyond plain columns, equalities and simple conditions.
    """
    return _read(parsed(sql), columns, relations or {})


def _read(tree: exp.Expr, columns: Columns, relations: Mapping[str, str]) -> tuple[Query, ...]:
    if isinstance(tree, exp.Query) and tree.ctes:
        private = {cte.alias: cte.this.sql(dialect="duckdb") for cte in tree.ctes}
        if private.keys() & relations.keys():
            raise NotExpressible("a name of WITH that is a relation, too")
        tree.set("with_", None)
        return _read(tree, columns, {**relations, **private})
    if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
        branches = (*_read(tree.left, columns, relations), *_read(tree.right, columns, relations))
        selects = united(branches, columns)
        return tuple(
            replace(each, select=select, sets_key=branches[0].sets_key)
            for each, select in zip(branches, selects, strict=True)
        )
    if not isinstance(tree, exp.Select) or tree.find(exp.Subquery, exp.Window):
        raise NotExpressible(tree.sql())
    named = {table.name for table in tree.find_all(exp.Table)} & set(relations)
    if is_grouped(tree):
        return _grouped(tree, columns, relations, named)
    if not named:
        query = _Reader(tree, columns).read()
        chains = of_full_join(query.chain) if query.full else (query.chain,)
        return tuple(replace(query, full=False, chain=chain) for chain in chains)
    if any(not isinstance(join.this, exp.Unnest) for join in tree.args.get("joins") or ()):
        raise NotExpressible(tree.sql())
    below = read_query(relations[named.pop()], columns, relations)
    if any(each.groups for each in below):
        raise NotExpressible(tree.sql())
    return tuple(_Reader(tree, columns).over(each) for each in below)


def _grouped(
    tree: exp.Select, columns: Columns, relations: Mapping[str, str], named: set[str]
) -> tuple[Query, ...]:
    inner = [read_query(relations[name], columns, relations) for name in named]
    grouped = [each for queries in inner for each in queries if each.groups]
    reader = GroupReader(tree, next((each.groups[-1] for each in grouped), None))
    below = grouped or _read(reader.below, columns, relations)
    if len(below) != 1 or (grouped and (tree.args.get("where") or tree.args.get("joins"))):
        raise NotExpressible(tree.sql())
    (only,) = below
    return (replace(only, groups=(*only.groups, reader.grouping)),)


class _Reader:
    def __init__(self, tree: exp.Select, columns: Columns) -> None:
        self._tree = tree
        self._columns = columns
        self._topics: dict[str, str] = {}
        self._preserved: dict[str, Column] = {}
        self._below: dict[str, Output] = {}
        self._unnests: dict[str, Unnest] = {}
        self._full = False

    def over(self, below: Query) -> Query:
        """Read a query over the rows of another one."""
        self._below = {
            output.name: output
            for output in below.select
            if output.name != "_key" or not below.sets_key
        }
        self._read_unnests()
        select, where = self._select(), (*below.where, *self._where())
        unnests = (*below.unnests, *self._unnests.values())
        return replace(
            below,
            select=select,
            where=where,
            unnests=unnests,
            sets_key=self._sets_key(),
            own_key=below.key,
            headers=read_headers(self._tree, self._column, below),
        )

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
            if kind not in {"LEFT", "RIGHT", "INNER", "FULL"}:
                raise NotExpressible(kind)
            if kind == "FULL" and join.args.get("using"):
                raise NotExpressible("FULL JOIN with USING")
            self._full = self._full or kind == "FULL"
            joins.append(Join(alias=new, topic=self._topics[new], on=pairs, inner=kind == "INNER"))
        self._read_unnests()
        select, where = self._select(), self._where()
        return Query(
            chain=Chain(
                driving=order[0],
                driving_topic=self._topics[order[0]],
                joins=tuple(joins),
                turned=order != list(self._topics),
            ),
            select=select,
            where=where,
            unnests=tuple(self._unnests.values()),
            sets_key=self._sets_key(),
            full=self._full,
            headers=read_headers(self._tree, self._column),
        )

    def _sets_key(self) -> bool:
        return any(item.alias == "_key" for item in self._tree.expressions)

    def _select(self) -> tuple[Output, ...]:
        items = (item for item in self._tree.expressions if item.alias != HEADERS)
        return tuple(output for item in items for output in self._item(item))

    def _where(self) -> tuple[Condition, ...]:
        where = self._tree.args.get("where")
        if where is None:
            return ()
        parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
        return tuple(self._condition(part) for part in parts)

    def _joins(self) -> list[exp.Join]:
        joins: list[exp.Join] = self._tree.args.get("joins") or []
        return [join for join in joins if not isinstance(join.this, exp.Unnest)]

    def _read_unnests(self) -> None:
        for node in self._tree.find_all(exp.Unnest, bfs=False):
            self._unnest(node.alias, node.args["alias"].columns[0].name, node.expressions[0])

    def _unnest(self, alias: str, name: str, of: exp.Expr) -> Column:
        if alias in self._unnests:
            raise NotExpressible(of.sql())
        self._unnests[alias] = Unnest(alias=alias, name=name, list=self._column(of))
        return Column(alias, name)

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
                return Call("coalesce", self._column(node.this), literal(node.expressions[0]))
            case exp.Explode():
                return self._unnest("unnest", "element", node.this)
            case exp.Upper():
                return Call("upper", self._column(node.this))
            case exp.Add():
                return Call("plus", self._column(node.this), literal(node.expression))
            case exp.Cast() if node.to.is_type("BIGINT", "INTEGER"):
                return Call("integer", self._column(node.this))
            case _:
                return self._column(node)

    def _column(self, node: exp.Expr) -> Column:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise NotExpressible(node.sql())
        if self._below and node.table not in self._unnests:
            below = self._below.get(node.name)
            if below is None or below.as_text or not isinstance(below.term, Column):
                raise NotExpressible(node.sql())
            return below.term
        if node.table and self._has(node.table, node.name):
            return Column(node.table, node.name)
        if node.name in self._preserved:
            return self._preserved[node.name]
        own = [a for a, topic in self._topics.items() if node.name in self._columns[topic]]
        own += [a for a, unnest in self._unnests.items() if unnest.name == node.name]
        holders = own or [alias for alias in self._topics if self._has(alias, node.name)]
        if node.table or len(holders) != 1:
            raise NotExpressible(node.sql())
        return Column(holders[0], node.name)

    def _has(self, alias: str, name: str) -> bool:
        if alias in self._unnests:
            return name == self._unnests[alias].name
        known = self._columns[self._topics[alias]] if alias in self._topics else None
        return known is not None and (name in known or name in (*OF_RECORDS, HEADERS))

    def _item(self, item: exp.Expr) -> list[Output]:
        if isinstance(item, exp.Star) and self._below:
            return list(self._below.values())
        if isinstance(item, exp.Star):
            shown: list[Output] = []
            for alias, topic in self._topics.items():
                for name in self._columns[topic]:
                    column = self._preserved.get(name, Column(alias, name))
                    if name not in {output.name for output in shown}:
                        shown.append(Output(name=name, term=column))
            return shown
        name, node = item.alias_or_name, item.unalias()
        if isinstance(node, exp.Column) and not node.table and node.name in self._below:
            return [replace(self._below[node.name], name=name)]
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
                    return Compare(self._column(node.this), straight, literal(node.expression))
                return Compare(self._column(node.expression), turned, literal(node.this))
            case _:
                raise NotExpressible(node.sql())
