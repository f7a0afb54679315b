"""Literals: text compared with a number or time is read as a value of that type."""

from collections.abc import Callable, Iterator

from sqlglot import exp

from kaflow_engine.duck.wide.integers import BIGNUM
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.syntax import DIALECT

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_LEFT_OUT = (exp.Try, exp.Lambda, exp.Comprehension)
"""What may fail, and what has names of its own, whose types no row tells."""
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_NUMBERS = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE",
)  # fmt: skip
_COMPARED = (*_NUMBERS, BIGNUM, "BOOLEAN", "DATE", "UUID", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


def literal_casts(sql: str, type_of: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield each text that DuckDB casts whatever the data are, and the type it casts to.

    Args:
        sql: An expression.
        type_of: Tells the type of a part of it.
    """
    if "'" not in sql:
        return
    for node in parse_expression(sql).walk(prune=lambda node: isinstance(node, _LEFT_OUT)):
        if isinstance(node, _COMPARISONS + _ARITHMETIC):
            pairs = [(node.left, node.right), (node.right, node.left)]
        elif isinstance(node, exp.In):
            pairs = [(node.this, each) for each in node.expressions]
        elif isinstance(node, exp.Between):
            pairs = [(node.this, node.args["low"]), (node.this, node.args["high"])]
        else:
            continue
        for side, literal in pairs:
            if _is_text(literal) and not _is_text(side):
                kind = type_of(side.sql(dialect=DIALECT))
                if _converts(kind, arithmetic=isinstance(node, _ARITHMETIC)):
                    yield literal.name, kind


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _converts(kind: str, *, arithmetic: bool) -> bool:
    return kind in ((*_NUMBERS, BIGNUM) if arithmetic else _COMPARED) or kind.startswith("DECIMAL(")
