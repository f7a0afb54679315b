"""Queries with GROUP BY in the oracle's terms: the rows that go into groups, and the groups."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp, parse_one

from tests.reference.conditions import Column, Compare, Condition
from tests.reference.grouping import END, START, Function, GroupCall, Grouping, Hop, Session
from tests.reference.pipeline import HOUR
from tests.reference.unions import NotExpressible

_CALLS: dict[type[Any], Function] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
    exp.Median: "median",
    exp.ArrayAgg: "list",
    exp.List: "list",
    exp.First: "first",
    exp.Last: "last",
}
_UNITS = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": HOUR, "MILLISECOND": 1}
_BOUNDS = (START, END)


def parsed(sql: str) -> exp.Expr:
    """Parse a query; `session` would be a keyword."""
    return parse_one(re.sub(r"\bsession\(", '"session"(', sql), dialect="duckdb")


def is_grouped(tree: exp.Select) -> bool:
    """Tell whether a SELECT has groups, which DISTINCT makes, too."""
    grouped = any(tree.args.get(name) is not None for name in ("group", "distinct"))
    return grouped or any(item.find(exp.AggFunc) for item in tree.expressions)


class GroupReader:
    """Reads one GROUP BY.

    Args:
        tree: The query.
        below: The GROUP BY whose rows it reads, which have names already; None: it reads others.
    """

    def __init__(self, tree: exp.Select, below: Grouping | None) -> None:
        self._tree, self._below = tree, below
        self._items = [(item.alias_or_name, item.unalias()) for item in tree.expressions]
        self._entry: dict[str, exp.Expr] = {}
        self._keys: dict[str, str] = {}
        self._calls: list[GroupCall] = []
        self._window: Hop | Session | None = None
        self._passed_on = False
        self._start: str | None = None
        distinct = tree.args.get("distinct") is not None
        if distinct and tree.args.get("group") is not None:
            raise NotExpressible(tree.sql())
        for node in self._grouped_by():
            self._add_key(node)
        select = tuple((name, self._value(node)) for name, node in self._items)
        self.grouping = Grouping(
            keys=tuple(key for key in self._keys.values() if key != START),
            window=self._window,
            passed_on=self._passed_on,
            start=self._start,
            having=self._having(),
            calls=tuple(self._calls),
            select=select,
            distinct=distinct,
        )
        """What it says; how it is emitted is not part of it."""

    @property
    def below(self) -> exp.Select:
        """The query whose rows go into the groups."""
        tree = self._tree.copy()
        tree.set("group", None)
        tree.set("having", None)
        tree.set("distinct", None)
        items = [exp.alias_(node.copy(), name) for name, node in self._entry.items()]
        tree.set("expressions", items)
        return tree

    def _grouped_by(self) -> list[exp.Expr]:
        group = self._tree.args.get("group")
        if self._tree.args.get("distinct"):
            return [node for _, node in self._items]
        if group is None:
            return []
        if group.args.get("all"):
            return [node for _, node in self._items if not node.find(exp.AggFunc)]
        return [self._resolved(node) for node in group.expressions]

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal):
            return self._items[int(str(node.this)) - 1][1]
        aliased = {name: of for name, of in self._items if not isinstance(of, exp.Column)}
        return aliased.get(node.name, node) if isinstance(node, exp.Column) else node

    def _add_key(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Anonymous):
            lengths = [_milliseconds(each) for each in node.expressions]
            match node.name.lower(), lengths:
                case "tumble", [size]:
                    self._window = Hop(size=size, advance=size)
                case "hop", [size, advance]:
                    self._window = Hop(size=size, advance=advance)
                case "session", [gap]:
                    self._window = Session(gap=gap)
                case _:
                    raise NotExpressible(node.sql())
            return
        if self._is_window_below(node):
            assert self._below is not None
            self._window, self._passed_on = self._below.window, True
            self._start = node.name
            self._keys[node.sql()] = START
            return
        self._keys[node.sql()] = self._enter("g", node)

    def _is_window_below(self, node: exp.Expr) -> bool:
        """Tell whether it is the start of a window as it leaves."""
        below = self._below
        if below is None or not isinstance(below.window, Hop) or not isinstance(node, exp.Column):
            return False
        if self._tree.args.get("distinct"):  # it remembers rows, and these have no window
            return False
        return (node.name, START) in below.select

    def _enter(self, prefix: str, node: exp.Expr) -> str:
        if self._below is not None:
            if not isinstance(node, exp.Column):
                raise NotExpressible(node.sql())
            return node.name
        known = next((name for name, each in self._entry.items() if each == node), None)
        name = known or f"{prefix}{len(self._entry)}"
        self._entry[name] = node
        return name

    def _value(self, node: exp.Expr) -> str:
        if node.sql() in self._keys:
            return self._keys[node.sql()]
        column = node.find(exp.Column)
        if column is not None and not node.find(exp.AggFunc):
            if column.name in _BOUNDS:
                return column.name
            if self._keys.get(column.sql()) == START:
                return START
        return self._call(node)

    def _call(self, node: exp.Expr) -> str:
        where: tuple[Condition, ...] = ()
        if isinstance(node, exp.Filter):
            where = (self._compared(node.expression.this, lambda each: self._enter("a", each)),)
            node = node.this
        function, argument = _CALLS.get(type(node)), node.this
        if function is None or node.args.get("order"):
            raise NotExpressible(node.sql())
        if isinstance(argument, exp.Star):
            function, argument = "count_star", None
        elif isinstance(argument, exp.Distinct) and function == "count":
            function, argument = "count_distinct", argument.expressions[0]
        name = None if argument is None else self._enter("a", argument)
        call = GroupCall(name=f"c{len(self._calls)}", function=function, argument=name, where=where)
        same = (each for each in self._calls if replace(each, name=call.name) == call)
        known = next(same, None)
        if known is None:
            self._calls.append(call)
        return (known or call).name

    def _having(self) -> tuple[Condition, ...]:
        having = self._tree.args.get("having")
        return () if having is None else (self._compared(having.this, self._value),)

    def _compared(self, node: exp.Expr, name: Callable[[exp.Expr], str]) -> Condition:
        ops: dict[type[Any], Any] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
        ops |= {exp.EQ: "=", exp.NEQ: "<>"}
        if type(node) not in ops or not isinstance(node.expression, exp.Literal):
            raise NotExpressible(node.sql())
        literal = int(str(node.expression.this))
        return Compare(Column("", name(node.this)), ops[type(node)], literal)


def _milliseconds(node: exp.Expr) -> int:
    found = re.fullmatch(r"INTERVAL '?(\d+)'? (\w+?)S?", node.sql(dialect="duckdb"))
    if found is None:
        raise NotExpressible(node.sql())
    return int(found[1]) * _UNITS[found[2].upper()]
