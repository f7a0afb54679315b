"""Row conditions as checks have them: `amount > 0 AND kind = 'x'`."""

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from kaflow_engine.duck import binding, quoting
from kaflow_engine.duck.wide.integers import mentions
from kaflow_engine.errors import Location, SqlError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.types.as_run import as_run
from kaflow_engine.sql.types.functions import unknown_function
from kaflow_engine.sql.types.refusals import refusal
from kaflow_engine.sql.types.wide_operations import corrected

_HINT = "write SQL over the columns of the output, such as amount > 0 AND kind = 'x'"


def check_condition(condition: str, columns: Sequence[Column], at: Location | None) -> None:
    """Refuse what is no condition on one row.

    Args:
        condition: SQL.
        columns: Of the rows.
        at: Where it stands.

    Raises:
        UnknownName: It names a column or a function that does not exist.
        SqlError: It cannot be parsed or bound, reads something else, or is no condition.
    """
    try:
        tree = sqlglot.parse_one(condition, dialect=DIALECT, into=exp.Condition)
    except (ParseError, TokenError) as error:
        raise SqlError(f"{condition!r} is no condition", at, _HINT) from error
    if tree.find(exp.Query):
        raise SqlError(f"the condition {condition!r} reads more than a row", at, _HINT)
    for call in tree.find_all(exp.Dot):
        if isinstance(call.expression, exp.Func):
            raise unknown_function(call.expression.name, at, of_rows=True)
    rewritten = as_run(tree, at)
    plain = frozenset(column.name for column in columns if not mentions(column.type))
    asked = corrected(condition if rewritten is tree else rewritten.sql(dialect=DIALECT), plain)
    names = [column.name for column in columns]
    known = {name.lower() for name in names}
    for found in tree.find_all(exp.Column):
        if (name := found.parts[0].name).lower() not in known:
            raise UnknownName("output column", name, names, at)

    def type_of(sql: str) -> str:
        rows = ", ".join(f"NULL::{c.type} AS {quoting.identifier(c.name)}" for c in columns)
        return binding.bind(f"SELECT ({sql}\n) AS x FROM (SELECT {rows}) WHERE ({sql}\n) IS NULL")[
            0
        ]

    try:
        kind = type_of(asked)
    except binding.Error as error:
        raise refusal(error, asked, at, type_of) from error
    if kind != "BOOLEAN":
        raise SqlError(f"the condition {condition!r} is of type {kind}, not BOOLEAN", at, _HINT)


def runnable(condition: str) -> str:
    """Return a condition that was checked as DuckDB runs it: with the functions of the project,
    and right for wide integers, too."""
    try:
        tree = sqlglot.parse_one(condition, dialect=DIALECT, into=exp.Condition)
    except (ParseError, TokenError):
        return condition  # it was not checked, and DuckDB says what is wrong with it
    found = as_run(tree, None)
    return corrected(condition if found is tree else found.sql(dialect=DIALECT))
