"""Columns that rows keep past a look-up: those that something behind it reads."""

from dataclasses import replace

from kaflow_engine.flow.transforms import IN
from kaflow_engine.sql.shape import Expr, GroupShape, QueryShape


def with_used_columns(shape: QueryShape) -> QueryShape:
    """Return a query whose look-ups are given no more of a row than what is read behind them."""
    found: list[GroupShape] = []
    read: list[Expr] = [output.expr for output in shape.outputs]
    for group in reversed(shape.groups):
        read += group.where
        if group.transform is not None and group.transform.is_lookup:
            used = {name for expr in read for alias, name in expr.uses if alias == group.alias}
            keys = tuple(
                (name, expr)
                for name, expr in group.keys
                if not group.transform.is_passed_column(name) or name.removeprefix(IN) in used
            )
            group = replace(group, keys=keys)
        read += [*group.expressions, *([group.window_of] if group.window_of else [])]
        found.append(group)
    return replace(shape, groups=tuple(found[::-1]))
