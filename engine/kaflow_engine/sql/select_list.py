"""One item of a select list: the columns it gives, or the key of its rows."""

from collections.abc import Iterable

from sqlglot import exp

from kaflow_engine.errors import SqlError
from kaflow_engine.model.record_columns import HEADERS, KEY
from kaflow_engine.sql.scope import Scope
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import at_line


def key_of(items: Iterable[exp.Expr]) -> str | None:
    """Return `_key` as it is written after AS: the key of the rows, and no column of theirs."""
    names = (item.alias for item in items if isinstance(item, exp.Alias))
    return next((name for name in names if name.lower() == KEY), None)


def projected(node: exp.Expr, scope: Scope) -> dict[str, exp.Expr]:
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
        shown = node.sql(dialect="duckdb")
        raise SqlError(f"the output column {shown} has no name", at, "give it one with AS")
    if isinstance(node, exp.Alias) and name.lower() == HEADERS:
        raise SqlError(
            f"AS {HEADERS} cannot set the headers of output records yet",
            at,
            "give the column another name: it is then part of the value",
        )
    body = node.this if isinstance(node, exp.Alias) else node
    return {name: scope.resolve(body)}
