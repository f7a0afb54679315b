"""UNION ALL of tables: rows of its branches replace each other, and a literal tells them apart."""

from collections.abc import Sequence
from dataclasses import replace

import duckdb
from sqlglot import exp

from kaflow_engine.duck.queries import value
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.syntax import DIALECT, at_line


def wrong_kinds_of_branches(branches: Sequence[Flat], at: Location | None) -> list[SqlError]:
    """Return an error for each branch whose rows replace each other, where those of others stay.

    Args:
        branches: Of the union.
        at: Where the SQL text begins.
    """
    changing = [branch for branch in branches if branch.changes_rows]
    return [] if len(changing) == len(branches) else [_beside(branch, at) for branch in changing]


def _beside(branch: Flat, at: Location | None) -> SqlError:
    if branch.groups:
        return SqlError(
            "groups that change stand under UNION ALL beside rows that stay",
            at_line(at, branch.groups[-1].line),
            "write each query to an output of its own; or add a window to the GROUP BY, whose rows "
            "leave once, when it is closed",
        )
    return SqlError(
        f"table '{branch.first}' stands under UNION ALL beside rows that stay",
        at_line(at, branch.line),
        "write each branch to an output of its own; or read the topics of all of them with table: "
        "true, or of none",
    )


def discriminated(branches: Sequence[Flat]) -> list[Flat]:
    """Return the branches of a union; those of tables with the column that is another literal in
    each of them, or a note that there is none.

    Args:
        branches: Their columns are aligned.
    """
    first = branches[0]
    if not first.changes_rows:
        return list(branches)
    for name in first.values:
        literals = [branch.outputs[name] for branch in branches]
        if all(map(_is_literal, literals)) and _differ(literals):
            return [
                replace(each, discriminator=(name, each.outputs[name]), alike=None)
                for each in branches
            ]
    return [replace(each, discriminator=None, alike=first.line or 1) for each in branches]


def wrong_keys_of_branches(branches: Sequence[Flat], at: Location | None) -> list[SqlError]:
    """Return an error where rows leave tables of a union, and two of them may have one key.

    Args:
        branches: What leaves.
        at: Where the SQL text begins.
    """
    return [
        SqlError(
            "tables stand under UNION ALL, and no column tells the rows of one branch from those "
            "of another",
            at_line(at, branch.alike),
            "select a literal that is another one in each branch, such as 'a' AS source: it is "
            "then a part of the key",
        )
        for branch in branches[:1]
        if branch.changes_rows and branch.alike is not None
    ]


def _is_literal(tree: exp.Expr) -> bool:
    while isinstance(tree, exp.Cast | exp.Neg | exp.Paren):
        tree = tree.this
    return isinstance(tree, exp.Literal | exp.Boolean)


def _differ(literals: Sequence[exp.Expr]) -> bool:
    """Tell whether values are different in the type that they have in common."""
    rows = ", ".join(f"({tree.sql(dialect=DIALECT)})" for tree in literals)
    try:
        found = value(f"SELECT count(DISTINCT v) FROM (VALUES {rows}) t(v)")
    except duckdb.Error:
        return False  # where types are checked says so
    return found == len(literals)


def refuse_kept_side(flat: Flat, alias: str, at: Location | None) -> None:
    """Refuse a join that keeps rows of a table which meet no row of a union.

    Args:
        flat: One branch of the union.
        alias: What is joined to it.
        at: Where the join stands.

    Raises:
        SqlError: With the way out.
    """
    if flat.changes_rows and (flat.discriminator is not None or flat.alike is not None):
        raise SqlError(
            f"RIGHT and FULL JOIN would keep rows of '{alias}' that meet no row of any branch of a "
            "UNION ALL",
            at,
            "write LEFT JOIN; or write the UNION ALL to a topic, and read that as a table in "
            "another pipeline",
        )
