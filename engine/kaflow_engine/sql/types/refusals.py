"""DuckDB's binder errors as messages of our own."""

import re
from collections.abc import Callable

from sqlglot import exp

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.streamable import PLACES
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.types.functions import unknown_function, wrong_types

TYPES_HINT = "use a DuckDB type such as VARCHAR, BIGINT, DOUBLE, BOOLEAN or TIMESTAMP"
_CAST = "cast one side with CAST(… AS …)"
_CALL = re.compile(r"['\"](.+\(.*\))['\"]")
_MISSING = re.compile(r"(Type|Function) with name \"?(.+?)\"? does not exist")


def refusal(
    error: Exception, sql: str, at: Location | None, type_of: Callable[[str], str]
) -> ModelError:
    """Say what is wrong with an expression.

    Args:
        error: What DuckDB raised.
        sql: The expression.
        at: Where it stands.
        type_of: Tells the type of a part of it, and raises as DuckDB does.
    """
    said = str(error).split("\n", 1)[0].split("Error: ", 1)[-1].strip()
    missing = _MISSING.search(said)
    if missing and missing[1] == "Type":
        return SqlError(f"unknown type '{missing[2]}'", at, TYPES_HINT)
    if missing:
        return unknown_function(missing[2], at)
    if "aggregate" in said.lower() or "window function" in said.lower():
        hint = "aggregate in the SELECT list or HAVING of the query"
        return SqlError("an aggregate stands where there are no groups", at, hint)
    if "UNNEST" in said:
        return SqlError("generate_subscripts cannot run here", at, PLACES)
    if "struct" in said:
        field = _no_field(sql, at, type_of)
        if field is not None:
            return field
    call = _CALL.search(said)
    if call and said.startswith(("No function matches", "Could not choose")):
        how_many = "no function takes" if said.startswith("No") else "several functions take"
        shown = call[1].replace("_LITERAL", "")
        name, _, given = shown.partition("(")
        of_project = wrong_types(name, given.removesuffix(")"), at)
        if of_project is not None:
            return of_project
        hint = "cast the arguments with CAST(… AS …)"
        return SqlError(f"{how_many} these types: {shown}", at, hint)
    said = plain(said)
    if said.startswith("Cannot compare"):
        return SqlError(said[0].lower() + said[1:], at, _CAST)
    return SqlError(said[:1].lower() + said[1:].rstrip("."), at)


def _fields(kind: str) -> str:
    if kind.startswith("STRUCT"):
        return "write the name of a field as the type shows it"
    return "for alias.column, check the alias; for a field, declare the column as STRUCT(…)"


def _no_field(sql: str, at: Location | None, type_of: Callable[[str], str]) -> SqlError | None:
    """Find the `a.b` of which `a` is no struct, or one without `b`."""
    for node in parse_expression(sql).find_all(exp.StructExtract, bfs=False):
        whole, part = node.sql(dialect=DIALECT), node.this.sql(dialect=DIALECT)
        try:
            kind = type_of(part)
        except binding.Error:
            continue  # the mistake is further inside
        try:
            type_of(whole)
        except binding.Error:
            owner = node.this.name if isinstance(node.this, exp.Column) else part.replace('"', "")
            return SqlError(
                f"'{owner.rpartition('.')[2]}' is of type {kind} and has no field "
                f"'{node.expression.name}'",
                at,
                _fields(kind),
            )
    return None
