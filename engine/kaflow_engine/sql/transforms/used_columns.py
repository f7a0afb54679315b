"""Columns that rows keep past a look-up: those that something behind it reads."""

from collections.abc import Collection
from dataclasses import replace

from kaflow_engine.flow.transforms import IN, LookupParams
from kaflow_engine.sql.groups.shapes import TransformShape
from kaflow_engine.sql.shape import Expr, GroupShape, QueryShape


def _wanting(transform: TransformShape, used: Collection[str]) -> TransformShape:
    """Return a look-up of those columns of the table that are read."""
    params = transform.params
    assert isinstance(params, LookupParams)
    columns = tuple(pair for pair in params.columns if pair[0] in used)
    gone = {called for called, _ in params.columns if called not in used}
    names = {*params.on, *(name for _, name in columns)}
    types = tuple(column for column in params.types if column.name in names)
    schema = tuple(pair for pair in transform.schema if pair[0] not in gone)
    return replace(transform, schema=schema, params=replace(params, columns=columns, types=types))


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
            group = replace(group, keys=keys, transform=_wanting(group.transform, used))
        read += [*group.expressions, *([group.window_of] if group.window_of else [])]
        found.append(group)
    return replace(shape, groups=tuple(found[::-1]))
