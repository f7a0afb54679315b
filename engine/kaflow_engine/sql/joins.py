"""Join conditions to key pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.scope import to_expr
from kaflow_engine.sql.shape import Expr, KeyPair
from kaflow_engine.sql.streamable import is_unnest

_WAY_OUT = (
    "join on equalities such as a.x = b.y, joined by AND; "
    "put other conditions into WHERE or a derived table"
)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One equality of a join, its columns resolved."""

    left: exp.Expr
    right: exp.Expr
    line: int | None

    @classmethod
    def of(cls, tree: exp.Expr, at: Location | None, line: int | None) -> "Condition":
        """Read one conjunct of ON.

        Raises:
            SqlError: it is not an equality.
        """
        if not isinstance(tree, exp.EQ):
            raise SqlError("the join condition is not an equality", at, _WAY_OUT)
        return cls(left=tree.left, right=tree.right, line=line)


def split_condition(
    conditions: Sequence[Condition], alias: str, before: Sequence[str], at: Location | None
) -> tuple[KeyPair, ...]:
    """Sort the sides of each equality into what was read before and the joined side.

    Raises:
        SqlError: an equality that does not have one side each.
    """
    return tuple(_pair(condition, alias, frozenset(before), at) for condition in conditions)


def _pair(condition: Condition, alias: str, before: frozenset[str], at: Location | None) -> KeyPair:
    left = to_expr(condition.left, condition.line)
    right = to_expr(condition.right, condition.line)
    for outer, inner in ((left, right), (right, left)):
        if _is_side(inner, frozenset({alias})) and _is_side(outer, before):
            if len(outer.aliases) > 1:
                raise SqlError("a join condition over three tables cannot run here", at, _WAY_OUT)
            return KeyPair(outer=outer, inner=inner)
    if len(left.aliases | right.aliases) > 2:
        raise SqlError("a join condition over three tables cannot run here", at, _WAY_OUT)
    raise SqlError(
        f"the join condition does not compare '{alias}' with a table read before it", at, _WAY_OUT
    )


def _is_side(expr: Expr, aliases: frozenset[str]) -> bool:
    return bool(expr.aliases) and expr.aliases <= aliases


def is_right(select: exp.Select) -> bool:
    joins: list[exp.Join] = select.args.get("joins") or []
    alone = sum(not is_unnest(join) for join in joins) == 1
    return alone and (joins[0].side or "").upper() == "RIGHT"


def turned(select: exp.Select, at: Location | None) -> tuple[exp.Expr, list[exp.Join]]:
    """Return the driving table and the joins; a RIGHT JOIN of two tables turned round."""
    clause = select.args.get("from_") or select.args.get("from")
    if clause is None:
        raise SqlError("the query has no FROM", at, "read at least one topic")
    joins: list[exp.Join] = select.args.get("joins") or []
    if not is_right(select):
        return clause.this, joins
    turned = joins[0].copy()
    turned.set("this", clause.this.copy())
    return joins[0].this, [turned, *joins[1:]]
