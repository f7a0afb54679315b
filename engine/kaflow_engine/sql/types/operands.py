"""Operator precedence: an expression that takes the place of a name, in brackets where needed."""

from sqlglot import exp

_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.AtTimeZone, exp.Bracket)
_CLOSED = (exp.Paren, exp.Dot, exp.Bracket)
"""Operators that nothing around them takes apart."""


def in_place_of(node: exp.Expr, tree: exp.Expr) -> exp.Expr:
    """Return an expression as it stands where a node did.

    Without brackets `x + 1`, which a derived table calls y, would be another number in `y * 2`.
    """
    around = node.parent
    if around is None or not isinstance(tree, _OPERATORS) or not isinstance(around, _OPERATORS):
        return tree
    chained = isinstance(tree, exp.And | exp.Or) and type(tree) is type(around)
    if chained or isinstance(tree, _CLOSED) or isinstance(around, exp.Paren | exp.Dot):
        return tree
    return exp.paren(tree, copy=False)
