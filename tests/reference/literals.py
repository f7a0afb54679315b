"""Constants of SQL as Python values."""

from typing import Any

from sqlglot import exp

from tests.reference.unions import NotExpressible


def literal(node: exp.Expr) -> Any:
    match node:
        case exp.Literal():
            return node.this if node.is_string else _number(str(node.this))
        case exp.Neg(this=exp.Literal() as inner):
            return -_number(str(inner.this))
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case _:
            raise NotExpressible(node.sql())


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
