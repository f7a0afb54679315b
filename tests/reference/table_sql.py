"""Pipelines over tables, as authors write them, in the oracle's terms."""

# pyright: basic

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sqlglot import exp, parse_one

from tests.reference.grouped import parsed
from tests.reference.literals import literal
from tests.reference.table_query import KAFKA_KEY, TableJoin, Tables, TableTopic, TableWrite
from tests.reference.unions import Columns, NotExpressible

Author = Mapping[str, Any]
Topics = Mapping[str, TableTopic]


def is_over_tables(author: Author) -> bool:
    """Tell whether all topics that a pipeline reads are tables."""
    tables = {name for name, spec in author.get("topics", {}).items() if spec.get("table")}
    relations = _relations(author)
    texts = [*relations.values(), *(_text(output, relations) for output in _outputs(author))]
    trees = [parsed(text) for text in texts] if tables else []
    private = {cte.alias for tree in trees for cte in tree.find_all(exp.CTE)}
    names = {_name(each) for tree in trees for each in tree.find_all(exp.Table)}
    return bool(tables) and names - set(relations) - private <= tables


def read_tables(
    author: Author,
    columns: Columns,
    partitions: Mapping[str, int],
    duration: Callable[[str], int],
) -> tuple[tuple[TableWrite, ...], dict[str, TableTopic]]:
    """Return the outputs and topics of a pipeline over tables.

    Raises:
        NotExpressible: It is beyond the oracle.
    """
    topics = {
        name: TableTopic(
            name=name,
            columns=columns[name],
            primary_key=tuple(spec.get("primary_key", ())),
            operation=spec.get("operation"),
            retain=duration(spec["retain"]) if "retain" in spec else None,
            event_time=spec.get("event_time"),
            max_future=duration(spec.get("max_future", "1d")),
            partitions=partitions.get(name, 1),
        )
        for name, spec in author["topics"].items()
    }
    relations = _relations(author)
    default = author.get("emission", {}).get("coalesce", "batch")
    writes: list[TableWrite] = []
    for output in _outputs(author):
        tree = parse_one(_text(output, relations), dialect="duckdb")
        if tree.find(exp.Window, exp.Unnest, exp.Explode):
            raise NotExpressible(tree.sql())
        found = [_Reader(e, topics, relations).write(output["topic"]) for e in _branches(tree)]
        each = output.get("coalesce", default) == "none"
        writes += [replace(write, each=each) for write in _united(found)]
    return tuple(writes), topics


def _branches(tree: exp.Expr) -> list[exp.Expr]:
    if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
        return [*_branches(tree.left), *_branches(tree.right)]
    return [tree]


def _united(writes: list[TableWrite]) -> list[TableWrite]:
    """Return the branches of a union under the names of the first one, each with its literal."""
    if len(writes) == 1:
        return writes
    names = [name for name, _ in writes[0].select]
    trees = [[parse_one(sql, dialect="duckdb") for _, sql in write.select] for write in writes]
    for name, *own in zip(names, *trees, strict=True):
        if all(isinstance(each, exp.Literal) for each in own) and len({*own}) == len(own):
            return [
                replace(
                    write,
                    select=tuple(zip(names, (sql for _, sql in write.select), strict=True)),
                    discriminator=(name, literal(each)),
                )
                for write, each in zip(writes, own, strict=True)
            ]
    raise NotExpressible("a union of tables without a literal that differs")


@dataclass(frozen=True, kw_only=True)
class _Below:
    """What a query reads: its columns by name, in order, as `*` shows them."""

    tables: Tables
    columns: dict[str, exp.Expr]
    where: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    having: str | None = None
    entry: tuple[str, ...] = field(default=())


class _Reader:
    """Reads one SELECT, and those that it reads from."""

    def __init__(self, tree: exp.Expr, topics: Topics, relations: Mapping[str, str]) -> None:
        if not isinstance(tree, exp.Select) or tree.find(exp.Subquery, exp.Union, exp.Unnest):
            raise NotExpressible(tree.sql())
        private = {cte.alias: cte.this.sql(dialect="duckdb") for cte in tree.ctes}
        tree.set("with_", None)
        self._tree, self._topics = tree, topics
        self._relations = {**relations, **private}
        self._aliases: dict[str, str] = {}
        self._using: dict[str, exp.Expr] = {}
        first = tree.args["from_"].this
        self._below: _Below | None = None
        if _name(first) in self._relations:
            if tree.args.get("joins"):
                raise NotExpressible(tree.sql())
            text = self._relations[_name(first)]
            below = _Reader(parse_one(text, dialect="duckdb"), topics, self._relations)
            self._below = below.read()

    def read(self) -> _Below:
        """Return what there is to read of it."""
        tables = self._below.tables if self._below else self._read_tables()
        columns = dict(self._items())
        where = self._below.where if self._below else ()
        if condition := self._tree.args.get("where"):
            parts = condition.this.flatten() if isinstance(condition.this, exp.And) else None
            where += tuple(_sql(self._own(part)) for part in parts or [condition.this])
        grouped = self._tree.args.get("group") is not None or any(
            each.find(exp.AggFunc) for each in columns.values()
        )
        if self._below and self._below.groups is not None:
            raise NotExpressible(self._tree.sql())
        if not grouped:
            return _Below(tables=tables, columns=columns, where=where)
        having = self._tree.args.get("having")
        condition = None if having is None else self._own(having.this)
        calls = [*columns.values(), *([] if condition is None else [condition])]
        return _Below(
            tables=tables,
            columns=columns,
            where=where,
            groups=tuple(map(_sql, self._groups(columns))),
            having=None if condition is None else _sql(condition),
            entry=tuple(dict.fromkeys(_sql(leaf) for call in calls for leaf in _leaves(call))),
        )

    def write(self, topic: str) -> TableWrite:
        """Return it as an output."""
        found = self.read()
        return TableWrite(
            topic=topic,
            tables=found.tables,
            select=tuple((name, _sql(each)) for name, each in found.columns.items()),
            where=found.where,
            groups=found.groups,
            entry=found.entry,
            having=found.having,
        )

    def _read_tables(self) -> Tables:
        first = self._tree.args["from_"].this
        self._aliases[first.alias_or_name] = _name(first)
        joins: list[TableJoin] = []
        for join in self._tree.args.get("joins") or []:
            alias = join.this.alias_or_name
            before = list(self._aliases)
            self._aliases[alias] = _name(join.this)
            kind = join.side or join.kind or "INNER"
            if using := join.args.get("using"):
                pairs = [self._used(each.name, before, alias, kind) for each in using]
            else:
                on = join.args["on"]
                parts = on.flatten() if isinstance(on, exp.And) else [on]
                pairs = [self._pair(part, alias) for part in parts]
            joins.append(TableJoin(kind=kind, alias=alias, on=tuple(pairs)))
        return Tables(sources=tuple(self._aliases.items()), joins=tuple(joins))

    def _used(self, name: str, before: list[str], alias: str, kind: str) -> tuple[str, str]:
        left = self._using.get(name)
        if left is None:
            holder = next(each for each in before if name in self._columns_of(each))
            left = _column(holder, name)
        right = _column(alias, name)
        outer = kind in ("FULL", "RIGHT")
        self._using[name] = exp.Coalesce(this=left, expressions=[right]) if outer else left
        return _sql(left), _sql(right)

    def _pair(self, part: exp.Expr, alias: str) -> tuple[str, str]:
        if not isinstance(part, exp.EQ):
            raise NotExpressible(part.sql())
        left, right = self._own(part.this), self._own(part.expression)
        own = {column.table for column in left.find_all(exp.Column)}
        return (_sql(right), _sql(left)) if own == {alias} else (_sql(left), _sql(right))

    def _items(self) -> Iterator[tuple[str, exp.Expr]]:
        for item in self._tree.expressions:
            if isinstance(item, exp.Star):
                yield from self._all()
            else:
                yield item.alias_or_name, self._own(item.unalias())

    def _all(self) -> Iterator[tuple[str, exp.Expr]]:
        if self._below is not None:
            yield from self._below.columns.items()
        for alias, topic in self._aliases.items():
            for name in self._topics[topic].columns:
                yield name, self._using.get(name) or _column(alias, name)

    def _groups(self, columns: Mapping[str, exp.Expr]) -> list[exp.Expr]:
        group = self._tree.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            return [each for each in columns.values() if not each.find(exp.AggFunc)]
        shown = list(columns.values())
        found: list[exp.Expr] = []
        for each in group.expressions:
            if isinstance(each, exp.Literal):
                found.append(shown[int(str(each.this)) - 1])
            elif isinstance(each, exp.Column) and not each.table and each.name in columns:
                found.append(columns[each.name])
            else:
                found.append(self._own(each))
        return found

    def _own(self, node: exp.Expr) -> exp.Expr:
        """Write an expression over columns of aliases."""
        return node.transform(lambda each: self._resolved(each))

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if self._below is not None:
            if node.name == "_time":
                raise NotExpressible("the time of groups, as a value")
            found = self._below.columns[node.name].copy()
            return found if isinstance(found, exp.Column) else exp.Paren(this=found)
        if node.table:
            return _column(node.table, node.name)
        if node.name in self._using:
            return self._using[node.name].copy()
        holders = [each for each in self._aliases if node.name in self._columns_of(each)]
        if len(holders) != 1:
            raise NotExpressible(node.sql())
        return _column(holders[0], node.name)

    def _columns_of(self, alias: str) -> list[str]:
        return [KAFKA_KEY, *self._topics[self._aliases[alias]].columns]


_AROUND = (exp.Distinct, exp.Order, exp.Ordered, exp.Where, exp.WithinGroup)


def _leaves(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what the calls of aggregate functions in an expression read of a row."""
    for call in node.find_all(exp.AggFunc):
        yield from _inner(call)
    for each in node.find_all(exp.Filter):
        yield from _inner(each.expression)


def _inner(node: exp.Expr) -> Iterator[exp.Expr]:
    for child in node.iter_expressions():
        if isinstance(child, _AROUND):
            yield from _inner(child)
        elif not isinstance(child, exp.Star):
            yield child


def _outputs(author: Author) -> list[dict[str, Any]]:
    return author.get("outputs") or [{"query": author["query"], **author["output"]}]


def _relations(author: Author) -> dict[str, str]:
    return {n: spec["query"] for n, spec in author.get("relations", {}).items() if "query" in spec}


def _text(output: Mapping[str, str], relations: Mapping[str, str]) -> str:
    if query := output.get("query"):
        return query
    return relations.get(output["from"]) or f'SELECT * FROM "{output["from"]}"'


def _name(table: exp.Expr) -> str:
    return ".".join(part.name for part in cast(exp.Table, table).parts)


def _column(alias: str, name: str) -> exp.Column:
    return exp.column(name, table=alias, quoted=True)


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb")
