"""What DuckDB would calculate of BIGNUM and another type by rounding one of them."""

from collections.abc import Callable, Iterator

from sqlglot import exp

from kaflow_engine.duck.wide.integers import BIGNUM
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.syntax import DIALECT

_TWO = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
)


def lossy(sql: str, type_of: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield each part that is of BIGNUM and of FLOAT, DECIMAL or text, and that other type.

    DOUBLE makes a DOUBLE of BIGNUM, as of every integer.

    Args:
        sql: An expression.
        type_of: Tells the type of a part of it.
    """
    for node in parse_expression(sql).walk(prune=lambda node: isinstance(node, exp.Lambda)):
        for left, right in _pairs(node):
            kinds = [type_of(side.sql(dialect=DIALECT)) for side in (left, right)]
            if BIGNUM not in kinds:
                continue
            side, kind = (right, kinds[1]) if kinds[0] == BIGNUM else (left, kinds[0])
            text = isinstance(side, exp.Literal) and side.is_string  # is a number, or refused
            if (kind in ("FLOAT", "VARCHAR") and not text) or kind.startswith("DECIMAL("):
                yield node.sql(dialect=DIALECT), kind


def _pairs(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    if isinstance(node, _TWO):
        return [(node.left, node.right)]
    if isinstance(node, exp.Between):
        return [(node.this, node.args["low"]), (node.this, node.args["high"])]
    if isinstance(node, exp.In):
        return [(node.this, each) for each in node.expressions]
    return []
