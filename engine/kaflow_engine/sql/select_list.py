"""The select list and the conditions of a SELECT, with columns resolved; mistakes are gathered."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sqlglot import exp

from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.record_columns import ROLES
from kaflow_engine.sql.scope import NeedsSchema, Scope
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import DIALECT, at_line

T = TypeVar("T")


def columns_set(items: Iterable[exp.Expr]) -> dict[str, str]:
    """Return the record columns that stand after AS, each as it is written: what the rows have in
    their place, and no column of theirs."""
    names = [item.alias for item in items if isinstance(item, exp.Alias)]
    return {name.lower(): name for name in names if name.lower() in ROLES}


def selected_columns(
    select: exp.Select, scope: Scope, wrong: list[ModelError]
) -> dict[str, exp.Expr]:
    """Return what is selected, by name; what is wrong is noted, and NULL stands for it.

    Raises:
        SqlError: two columns have the same name.
        NeedsSchema: columns of a topic are needed that are not known yet.
    """
    found: dict[str, exp.Expr] = {}
    for projection in select.expressions:
        columns = _attempt(lambda p=projection: _projected(p, scope), wrong)
        if columns is None:
            columns = {plain(projection.alias_or_name): exp.null()}
        for name, expression in columns.items():
            if name.lower() in {other.lower() for other in found}:
                raise SqlError(
                    f"two output columns are called '{name}'",
                    at_line(scope.at, line_of(projection)),
                    "give one of them another name with AS",
                )
            found[name] = expression
    return found


def resolved(parts: Sequence[exp.Expr], scope: Scope, wrong: list[ModelError]) -> list[exp.Expr]:
    """Resolve conditions; those that are wrong are left out and noted."""
    found = (_attempt(lambda p=part: scope.resolve(p), wrong) for part in parts)
    return [tree for tree in found if tree is not None]


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition that AND connects."""
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        return [*conjuncts(inner.left), *conjuncts(inner.right)]
    return [inner]


def _attempt(read: Callable[[], T], wrong: list[ModelError]) -> T | None:
    try:
        return read()
    except NeedsSchema:
        raise
    except ModelError as error:
        wrong.append(error)
        return None


def _projected(node: exp.Expr, scope: Scope) -> dict[str, exp.Expr]:
    """Return the columns of an item by name, with what stands behind them.

    Raises:
        ModelError: It has no name, or names something that is not there.
        NeedsSchema: It needs columns of a topic that are not known yet.
    """
    at = at_line(scope.at, line_of(node))
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        if star.args.get("replace") or star.args.get("rename"):
            raise SqlError("* REPLACE and * RENAME cannot run here", at, "name the columns")
        table = node.table if isinstance(node, exp.Column) else None
        names: list[exp.Expr] = star.args.get("except_") or star.args.get("except") or []
        dropped = {name.name.lower() for name in names}
        found = scope.star(node, table or None)
        return {name: tree for name, tree in found.items() if name.lower() not in dropped}
    name = node.alias_or_name if isinstance(node, exp.Alias | exp.Column) else ""
    if not name:
        shown = plain(node.sql(dialect=DIALECT))
        raise SqlError(f"the output column {shown} has no name", at, "give it one with AS")
    body = node.this if isinstance(node, exp.Alias) else node
    return {name: scope.resolve(body)}
