"""A tree as its author wrote it, to one that DuckDB runs."""

from typing import TypeVar

from sqlglot import exp

from kaflow_engine.errors import Location
from kaflow_engine.sql.types.functions import with_functions
from kaflow_engine.sql.types.wide_numbers import with_wide_numbers

Tree = TypeVar("Tree", bound=exp.Expr)


def as_run(tree: Tree, at: Location | None) -> Tree:
    """Return a tree with the functions of the project as plans name them, and with wide integers.

    Args:
        tree: As it was parsed; it is not changed.
        at: Where its text starts.

    Raises:
        ModelError: As `with_functions` and `with_wide_numbers`.
    """
    return with_wide_numbers(with_functions(tree, at), at)
