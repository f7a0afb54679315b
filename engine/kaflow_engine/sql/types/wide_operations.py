"""What DuckDB does of wide integers wrongly or not at all, and no overload can correct: casts to
other numbers, which go through their text, the minus before one, and COALESCE of what is
calculated."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

import sqlglot
from sqlglot import exp

from kaflow_engine.duck.wide.integers import BIGNUM, NEGATIVE, mentions
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.groups.shapes import RunShape
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.shape import Expr, QueryShape
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.types.copied import copy_in_coalesce
from kaflow_engine.sql.types.wide_numbers import has_casts

_NUMBERS = frozenset(
    {
        *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
        *(exp.DType.UTINYINT, exp.DType.USMALLINT, exp.DType.UINT, exp.DType.UBIGINT),
        *(exp.DType.INT128, exp.DType.UINT128),
        *(exp.DType.DECIMAL, exp.DType.FLOAT, exp.DType.DOUBLE),
    }
)

_OPERATIONS = (exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Abs)

Schemas = Mapping[str, Sequence[Column]]
"""The columns of each topic."""


def with_wide_operations(
    shapes: Sequence[Sequence[QueryShape]], schemas: Schemas
) -> tuple[tuple[QueryShape, ...], ...]:
    """Return the queries of a pipeline so that all that they calculate takes wide integers, too.

    Args:
        shapes: The branches of each output.
        schemas: Where no query has wide integers, nothing changes.
    """
    wide = any(mentions(each.type) for columns in schemas.values() for each in columns)
    if not wide and not mentions(repr(shapes)):
        return tuple(map(tuple, shapes))
    return tuple(
        tuple(_mapped(shape, frozenset(), schemas) for shape in branches) for branches in shapes
    )


def _mapped(part: Any, plain: frozenset[str], schemas: Schemas) -> Any:
    """Return a part of a shape with its casts; `plain` are columns that are no wide integers."""
    if isinstance(part, Expr):
        sql = corrected(part.sql, plain)
        if sql == part.sql:
            return part
        return replace(part, sql=sql, meaning=part.meaning or part.sql)
    if isinstance(part, tuple):
        parts = cast("tuple[Any, ...]", part)
        return tuple(_mapped(each, plain, schemas) for each in parts)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    if isinstance(part, RunShape):
        query = sqlglot.parse_one(part.sql, dialect=DIALECT)
        return replace(part, sql=_corrected(query, frozenset()) or part.sql)
    if isinstance(part, QueryShape):
        plain = frozenset(_plain(part, schemas))
    own = {field.name: getattr(part, field.name) for field in fields(part)}
    mapped = {name: _mapped(each, plain, schemas) for name, each in own.items()}
    changed = {name: each for name, each in mapped.items() if each != own[name]}
    return replace(part, **changed) if changed else part


def _plain(shape: QueryShape, schemas: Schemas) -> list[str]:
    return [
        f"{source.alias}.{column.name}"
        for source in shape.sources
        if source.query is None
        for column in schemas.get(source.topic, ())
        if not mentions(column.type)
    ]


def corrected(sql: str, plain: frozenset[str] = frozenset()) -> str:
    """Return an expression that is right whether its columns are wide integers or not.

    Args:
        sql: An expression.
        plain: Columns that are none.
    """
    return _corrected(parse_expression(sql).copy(), plain) or sql


def _corrected(tree: exp.Expr, plain: frozenset[str]) -> str | None:
    """Return a tree as text; None: nothing had to be corrected."""
    holder = exp.Paren(this=tree)
    found = [node for node in reversed(list(holder.walk())) if _is_corrected(node, plain)]
    for node in found:
        node.replace(_through_text(node) if isinstance(node, exp.Cast) else _negative(node))
    copied = copy_in_coalesce(holder, lambda node: _is_operation(node, plain))
    return holder.this.sql(dialect=DIALECT) if found or copied else None


def _is_operation(node: exp.Expr, plain: frozenset[str]) -> bool:
    """Tell whether Python may calculate a node of wide integers."""
    return isinstance(node, _OPERATIONS) and _may_be_wide(node, plain)


def _is_corrected(node: exp.Expr, plain: frozenset[str]) -> bool:
    if isinstance(node, exp.Neg):
        return not isinstance(node.this, exp.Literal) and _may_be_wide(node.this, plain)
    is_cast = isinstance(node, exp.Cast) and node.to.this in _NUMBERS
    return is_cast and _may_be_wide(node.this, plain)


def _may_be_wide(value: exp.Expr, plain: frozenset[str]) -> bool:
    columns = {column.name for column in value.find_all(exp.Column)}
    return not columns <= plain or has_casts(value.sql(dialect=DIALECT))


def _through_text(node: exp.Cast) -> exp.Expr:
    value, through = node.this, node.copy()
    through.set("this", exp.cast(value.copy(), "VARCHAR", dialect=DIALECT))
    kind = exp.func("typeof", value.copy(), dialect=DIALECT)
    is_number = exp.EQ(this=kind, expression=exp.Literal.string(BIGNUM))
    return exp.Case(ifs=[exp.If(this=is_number, true=through)], default=node.copy())


def _negative(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=NEGATIVE, expressions=[node.this])
