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
_OF_HEADERS = (exp.Struct, exp.PropertyEQ, exp.Encode, exp.DataType)
"""What does not fail either, of maps whose names are different literals."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}


def raw_condition(
    spec: PipelineSpec,
    writes: Iterable[Write],
    driving: str,
    keys: Sequence[Expr],
    later: Iterable[tuple[Expr, Binder]],
    headers: Iterable[Expr] = (),
) -> str | None:
    """Return SQL over the driving record: where true, the original bytes travel; None: never.

    Args:
        spec: What the author wrote.
        writes: The outputs of the chain.
        driving: The driving alias.
        keys: The expressions of the output keys that may be NULL in a finished row.
        later: Expressions that are computed after the records are decoded, each with what knows
            the types of its comparisons.
        headers: Those of output records: most only put texts into a map.
    """
    if spec.emission.type == "smart" and spec.emission.on_expiry == "dead_letter":
        return "TRUE"
    schemas = [write.output.schema_ for write in writes]
    if any(schema is not None and schema.fields is not None for schema in schemas):
        return "TRUE"
    if any(not _harmless(expr, binder) for expr, binder in later):
        return "TRUE"
    if not all(map(_harmless_headers, headers)):
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


def _harmless_headers(expr: Expr) -> bool:
    """Tell whether headers can be made of any values."""
    return all(map(_harmless_part, parse_expression(expr.sql).walk()))


def _harmless_part(node: exp.Expr) -> bool:
    match node:
        case exp.ToMap():
            names = [pair.this for pair in node.this.expressions]
            literal = all(isinstance(name, exp.Literal) for name in names)
            return literal and len({name.name for name in names}) == len(names)
        case exp.Cast():
            return node.to.is_type("VARCHAR", "TEXT")
        case exp.Anonymous():
            return node.name.lower() == "map_concat"
        case _:
            return isinstance(node, (*_HARMLESS, *_OF_HEADERS))


def _kind(binder: Binder, tree: exp.Expr) -> str:
    return binder.type_of(Expr(sql=tree.sql(dialect=DIALECT), uses=()))
