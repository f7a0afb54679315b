"""Which rows must carry their original bytes, because they may still become dead letters."""

from collections.abc import Iterable

from sqlglot import exp

from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.bind import Binder
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.shape import Expr
from kaflow_engine.sql.syntax import DIALECT

_HARMLESS = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Case, exp.If, exp.Coalesce,
    exp.And, exp.Or, exp.Not, exp.Is, exp.Paren, exp.Upper, exp.Lower, exp.Trim, exp.Nullif,
)  # fmt: skip
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}


def raw_condition(
    spec: PipelineSpec,
    driving: str,
    key: Expr | None,
    later: Iterable[Expr],
    binder: Binder,
) -> str | None:
    """Return SQL over the driving record: where true, the original bytes travel; None: never.

    Args:
        spec: What the author wrote.
        driving: The driving alias.
        key: The expression of the output key.
        later: Expressions that are computed after the records are decoded.
        binder: For the types of comparisons.
    """
    smart = spec.emission.type == "smart"
    if smart and spec.emission.on_expiry == "dead_letter":
        return "TRUE"
    if spec.output.schema_ is not None and spec.output.schema_.fields is not None:
        return "TRUE"
    if any(not _harmless(expr, binder) for expr in later):
        return "TRUE"
    if key is None or (smart and spec.emission.on_expiry == "drop"):
        return None
    if key.aliases <= {driving}:
        return f"({key.sql}) IS NULL"
    return "TRUE"


def _harmless(expr: Expr, binder: Binder) -> bool:
    """Tell whether an expression cannot fail, whatever the values are."""
    for node in parse_expression(expr.sql).walk():
        if isinstance(node, _COMPARISONS):
            kinds = {_kind(binder, node.left), _kind(binder, node.right)}
            if (
                len(kinds) > 1
                and not kinds <= _WHOLE
                and not kinds <= {"DOUBLE", "FLOAT", "INTEGER"}
            ):
                return False
        elif not isinstance(node, _HARMLESS):
            return False
    return True


def _kind(binder: Binder, tree: exp.Expr) -> str:
    return binder.type_of(Expr(sql=tree.sql(dialect=DIALECT), uses=()))
