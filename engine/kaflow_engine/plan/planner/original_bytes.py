"""Which rows must carry their original bytes, because they may still become dead letters."""

from collections.abc import Iterable, Sequence

from sqlglot import exp

from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.shape import Expr
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.types.bind import Binder

_HARMLESS = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Case, exp.If, exp.Coalesce,
    exp.And, exp.Or, exp.Not, exp.Is, exp.Paren, exp.Upper, exp.Lower, exp.Trim, exp.Nullif,
)  # fmt: skip
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}


def raw_condition(
    spec: PipelineSpec,
    writes: Iterable[Write],
    driving: str,
    keys: Sequence[Expr],
    later: Iterable[tuple[Expr, Binder]],
) -> str | None:
    """Return SQL over the driving record: where true, the original bytes travel; None: never.

    Args:
        spec: What the author wrote.
        writes: The outputs of the chain.
        driving: The driving alias.
        keys: The expressions of the output keys that may be NULL in a finished row.
        later: Expressions that are computed after the records are decoded, each with what knows
            the types of its comparisons.
    """
    if spec.emission.type == "smart" and spec.emission.on_expiry == "dead_letter":
        return "TRUE"
    schemas = [write.output.schema_ for write in writes]
    if any(schema is not None and schema.fields is not None for schema in schemas):
        return "TRUE"
    if any(not _harmless(expr, binder) for expr, binder in later):
        return "TRUE"
    if not keys:
        return None
    if all(key.aliases <= {driving} for key in keys):
        return " OR ".join(dict.fromkeys(f"({key.sql}) IS NULL" for key in keys))
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
