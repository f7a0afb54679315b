"""What GROUP BY names: expressions, aliases, places in the select list, or ALL."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.windows import WINDOW_END, WINDOW_START
from kaflow_engine.sql.groups.calls import aggregates_in, line_near
from kaflow_engine.sql.groups.windows import function_named
from kaflow_engine.sql.scope import NeedsSchema, Scope, UnknownColumn
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import DIALECT, at_line


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item of GROUP BY."""

    tree: exp.Expr
    """With columns resolved."""
    called: str
    """What the SELECT calls it, or its SQL."""
    line: int | None


def items_of(select: exp.Select, selected: Mapping[str, exp.Expr], scope: Scope) -> list[Item]:
    """Return what the rows of a SELECT are grouped by.

    Args:
        select: As it was written.
        selected: Its columns by name, those of the rows that are grouped resolved.
        scope: The names of these rows.

    Raises:
        ModelError: An item means nothing, or an aggregate.
        NeedsSchema: Columns of a topic decide what one means.
    """
    group: exp.Group | None = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        return [
            Item(tree=tree, called=name, line=line_of(group))
            for name, tree in selected.items()
            if _varies(tree) and not tree.find(exp.Placeholder) and not _aggregated(tree)
        ]
    nodes: list[exp.Expr] = [each for each in group.expressions if not _is_empty(each)]
    return [_item(node, select, selected, scope, line_of(group)) for node in nodes]


def _item(
    node: exp.Expr,
    select: exp.Select,
    selected: Mapping[str, exp.Expr],
    scope: Scope,
    line: int | None,
) -> Item:
    node = node.unnest()
    line = line_near(node, line)
    at = at_line(scope.at, line)
    place = _place(node, len(selected), at)
    if place is not None:
        name = list(selected)[place]
        return _checked(Item(tree=selected[name], called=name, line=line), at)
    if _is_own(node, scope):
        raise _of_itself(node.name, at)
    tree = _aliased(node, select, selected, scope)
    if tree is None:
        tree = scope.resolve(node)
    names = [name for name, other in selected.items() if other == tree]
    called = names[0] if names else node.name if isinstance(node, exp.Column) else node.sql(DIALECT)
    return _checked(Item(tree=tree, called=called, line=line), at)


def _place(node: exp.Expr, count: int, at: Location | None) -> int | None:
    """Return the place in the select list that a number means, from 0."""
    number = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(number, exp.Literal) or number.is_string:
        return None
    shown = node.sql(DIALECT)
    if not shown.isdigit() or not 1 <= int(shown) <= count:
        raise SqlError(
            f"GROUP BY {shown} names no column of this SELECT",
            at,
            f"write a number from 1 to {count}, or the expression itself",
        )
    return int(shown) - 1


def _aliased(
    node: exp.Expr, select: exp.Select, selected: Mapping[str, exp.Expr], scope: Scope
) -> exp.Expr | None:
    """Return what the SELECT gives a name that no column of the rows has."""
    if not isinstance(node, exp.Column) or node.table:
        return None
    name = node.name.lower()
    item = next((part for part in select.expressions if part.alias.lower() == name), None)
    if item is None:
        return None
    tree = next(tree for known, tree in selected.items() if known.lower() == name)
    body = item.this
    if isinstance(body, exp.Column) and body.name.lower() == name:
        return tree
    known = [r for r in scope.relations if r.outputs is not None]
    if any(r.column(name) is not None for r in known):
        return None
    unknown = [topic for r in scope.relations if r.outputs is None for topic in r.topics]
    if unknown:
        raise NeedsSchema(unknown, at_line(scope.at, line_of(node)))
    try:
        return scope.resolve(node)
    except UnknownColumn:
        return tree


def _checked(item: Item, at: Location | None) -> Item:
    if _aggregated(item.tree):
        raise SqlError(
            f"GROUP BY {item.called} groups by an aggregate",
            at,
            "aggregate in a derived table, and group in the SELECT around",
        )
    if item.tree.find(exp.Placeholder):
        raise _of_itself(item.called, at)
    names = [function_named(node) for node in item.tree.unnest().find_all(exp.Anonymous)]
    inside = [name for name in names if name is not None]
    if inside and function_named(item.tree.unnest()) is None:
        raise SqlError(
            f"{inside[0]}() stands inside an expression of GROUP BY",
            at,
            f"group by {inside[0]}(…) alone, and select an expression over window_start",
        )
    return item


def _is_own(node: exp.Expr, scope: Scope) -> bool:
    """Tell whether a node is `window_start` or `window_end`, and no column."""
    if (
        not isinstance(node, exp.Column)
        or node.table
        or node.name.lower() not in (WINDOW_START, WINDOW_END)
    ):
        return False
    return all(relation.column(node.name) is None for relation in scope.relations)


def _of_itself(called: str, at: Location | None) -> SqlError:
    return SqlError(
        f"GROUP BY {called} groups by the window that it makes",
        at,
        "group by tumble(…), hop(…) or session(…) itself",
    )


def _varies(tree: exp.Expr) -> bool:
    return tree.find(exp.Column) is not None or function_named(tree.unnest()) is not None


def _aggregated(tree: exp.Expr) -> bool:
    return next(aggregates_in(tree), None) is not None


def _is_empty(node: exp.Expr) -> bool:
    """Tell whether a node is `()`: all rows are one group."""
    return isinstance(node, exp.Tuple) and not node.expressions
