"""What Python calculates, inside of COALESCE: DuckDB would read it after its memory is given back.

A list of it holds a copy, and its only element is that.
"""

from collections.abc import Callable

from sqlglot import exp


def copy_in_coalesce(tree: exp.Expr, of_python: Callable[[exp.Expr], bool]) -> bool:
    """Copy what COALESCE is given, in place, where Python calculates some of it.

    Args:
        tree: An expression or a query.
        of_python: Tells whether Python may calculate a node.

    Returns:
        Whether anything changed.
    """
    found = [
        value
        for call in tree.find_all(exp.Coalesce)
        for value in (call.this, *call.expressions)
        if any(of_python(node) for node in value.walk())
    ]
    for value in found:
        copied = exp.Anonymous(
            this="list_extract",
            expressions=[exp.Array(expressions=[value.copy()]), exp.Literal.number(1)],
        )
        value.replace(copied)
    return bool(found)
