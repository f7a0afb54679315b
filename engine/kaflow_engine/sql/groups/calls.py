"""Calls of aggregate functions: found in a tree, and frozen with what they read of a row."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions.catalogue import aggregate, plain
from kaflow_engine.sql.scope import to_expr
from kaflow_engine.sql.shape import ROW, CallShape, Expr
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import DIALECT

_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""What may stand around an aggregate function and is part of its call."""
_PARTS = (*_AROUND, exp.Distinct, exp.Order, exp.Ordered)
"""What in a call is no value of a row."""
_MACROS = {"wavg", "weighted_avg", "geomean", "geometric_mean"}
"""Aggregates that DuckDB writes as expressions over others."""


def function_of(node: exp.Expr) -> str | None:
    """Return what DuckDB calls the aggregate function that a node calls; None of another node."""
    while isinstance(node, _AROUND):
        node = node.this
    if not isinstance(node, exp.AggFunc | exp.Anonymous):
        return None
    name = node.name if isinstance(node, exp.Anonymous) else _generated(node)
    name = name.lower()
    known = name in binding.aggregates() or name in _MACROS or aggregate(name) is not None
    return name if known else None


def shown_name(node: exp.Expr) -> str:
    """Return what authors call the aggregate function that a node calls."""
    return plain(function_of(node) or "")


def aggregates_in(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the outermost aggregate calls in a tree, each with its FILTER."""
    left = [tree]
    while left:
        node = left.pop()
        if function_of(node) is not None:
            yield node
        elif not isinstance(node, exp.Window):
            left += reversed(list(node.iter_expressions()))


def arguments_of(call: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what a call reads of a row: arguments, what ORDER BY reads, and last the FILTER."""
    for child in _in_order(call):
        if isinstance(child, exp.Where):
            yield child.this
        elif isinstance(child, _PARTS) or isinstance(call, _AROUND) or _is_list_of(call, child):
            yield from arguments_of(child)
        elif not isinstance(child, exp.Star):
            yield child


def _is_list_of(call: exp.Expr, child: exp.Expr) -> bool:
    """Tell whether a node is the list that an aggregate of the project takes."""
    ours = isinstance(call, exp.Anonymous) and aggregate(call.name) is not None
    return ours and isinstance(child, exp.ArrayAgg)


def line_near(node: exp.Expr, line: int | None) -> int | None:
    """Return the line on which a node stands, else that of what it stands in."""
    own = line_of(node)
    return line if own is None else own


@dataclass(kw_only=True)
class Calls:
    """The calls of one group: equal ones are one, and so are equal arguments."""

    found: list[CallShape] = field(default_factory=list[CallShape])
    arguments: dict[str, tuple[str, Expr]] = field(default_factory=dict[str, tuple[str, Expr]])
    """Name and expression, by SQL."""

    def name_of(self, call: exp.Expr, line: int | None) -> str:
        """Return what the result of a call is called.

        Args:
            call: With columns of the rows that are grouped.
            line: Where it stands, if it does not know that itself.
        """
        copy = call.copy()
        condition = copy.expression.this if isinstance(copy, exp.Filter) else None
        read: dict[str, Expr] = {}
        asks: str | None = None
        for argument in list(arguments_of(copy)):
            if argument is not condition and not list(argument.find_all(exp.Column)):
                continue
            name, expr = self._argument(argument)
            read[name] = expr
            asks = name if argument is condition else asks
            argument.replace(exp.column(exp.to_identifier(f"{ROW}.{name}", quoted=True)))
        sql = copy.sql(dialect=DIALECT)
        for known in self.found:
            if known.sql == sql:
                return known.name
        function = function_of(call) or ""
        bare = function == "count" and not list(_values(call))
        shape = CallShape(
            name=f"c{len(self.found)}",
            function="count_star" if bare else function,
            arguments=tuple(read.items()),
            sql=sql,
            plain=_is_plain(copy, function),
            filter=asks,
            line=line_near(call, line),
        )
        self.found.append(shape)
        return shape.name

    def _argument(self, tree: exp.Expr) -> tuple[str, Expr]:
        expr = to_expr(tree, line_of(tree))
        return self.arguments.setdefault(expr.sql, (f"a{len(self.arguments)}", expr))


def _is_plain(call: exp.Expr, function: str) -> bool:
    inside = (exp.Distinct, exp.Order, *((exp.Filter,) if aggregate(function) else ()))
    return call.find(*inside) is None


def _in_order(call: exp.Expr) -> list[exp.Expr]:
    """Return the children of a node, FILTER last."""
    children = list(call.iter_expressions())
    return sorted(children, key=lambda child: isinstance(child, exp.Where))


def _values(call: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the arguments of the function itself."""
    while isinstance(call, _AROUND):
        call = call.this
    yield from arguments_of(call)


def _generated(node: exp.Expr) -> str:
    return node.sql(dialect=DIALECT).partition("(")[0]
