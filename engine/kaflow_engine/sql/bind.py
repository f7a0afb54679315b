"""Types of expressions, found by DuckDB without any data."""

from collections.abc import Mapping, Sequence
from typing import cast

import duckdb

from kaflow_engine.errors import Location, SqlError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.parse import at_line
from kaflow_engine.sql.shape import BATCH_TIME, MATCHED, Expr, QueryShape

AliasColumns = Mapping[str, Sequence[Column]]
"""The columns of each source alias."""


class Binder:
    """Answers what type an expression has over the columns of the sources."""

    def __init__(self, columns: AliasColumns, at: Location | None) -> None:
        self._at = at
        self._con = duckdb.connect(config={"threads": 1, "enable_external_access": False})
        self._con.execute("SET TimeZone = 'UTC'")
        names = [f'NULL::TIMESTAMPTZ AS "{BATCH_TIME}"']
        for alias, some in columns.items():
            names.append(f"NULL::BOOLEAN AS {_quoted(f'{alias}.{MATCHED}')}")
            names += [
                f"NULL::{column.type} AS {_quoted(f'{alias}.{column.name}')}" for column in some
            ]
        self._con.execute(f"CREATE TEMP TABLE sources AS SELECT {', '.join(names)} LIMIT 0")

    def type_of(self, expr: Expr) -> str:
        """Return the DuckDB type of an expression.

        Raises:
            SqlError: it cannot be bound, or is an aggregate.
        """
        return self._describe(expr.sql, expr.line)

    def key_type(self, left: Expr, right: Expr) -> str:
        """Return the type to which SQL casts both sides of an equality.

        Raises:
            SqlError: they cannot be compared.
        """
        kinds = (self.type_of(left), self.type_of(right))
        self._describe(f"({left.sql}) = ({right.sql})", left.line)
        if kinds[0] == kinds[1]:
            return kinds[0]
        if "VARCHAR" in kinds:
            return kinds[1] if kinds[0] == "VARCHAR" else kinds[0]
        return self._describe(f"coalesce({left.sql}, {right.sql})", left.line)

    def check_condition(self, expr: Expr) -> None:
        """Refuse a filter that is not a condition."""
        kind = self.type_of(expr)
        if kind not in ("BOOLEAN", '"NULL"'):
            raise SqlError(
                f"the filter is of type {kind}, not BOOLEAN", at_line(self._at, expr.line)
            )

    def _describe(self, sql: str, line: int | None) -> str:
        try:
            rows = self._con.execute(f"DESCRIBE SELECT {sql} AS x FROM sources").fetchall()
            self._con.execute(f"EXPLAIN SELECT 1 FROM sources WHERE ({sql}) IS NULL")
        except duckdb.Error as error:
            raise self._refusal(error, line) from error
        return "VARCHAR" if rows[0][1] == '"NULL"' else str(rows[0][1])

    def _refusal(self, error: duckdb.Error, line: int | None) -> SqlError:
        place = at_line(self._at, line)
        text = str(error).split("\n\n")[0].split("\nLINE ")[0].strip()
        text = text.split("Error: ", 1)[-1]
        first = text.split("\n", 1)[0]
        if "with name" in first and "does not exist" in first:
            name = first.split("with name ", 1)[1].split(" ", 1)[0].strip('"')
            return UnknownName("function", name, self._functions(), place)
        if "WHERE clause cannot contain aggregates" in first or "aggregate" in first.lower():
            return SqlError(
                "aggregates cannot run here",
                place,
                "aggregates and windows are not available in this version",
            )
        if first.startswith("No function matches"):
            call = first.split("'")[1] if "'" in first else first
            return SqlError(
                f"no function takes these types: {call}",
                place,
                "cast the arguments with CAST(… AS …)",
            )
        if first.startswith("Cannot compare"):
            return SqlError(first[0].lower() + first[1:], place, "cast one side with CAST(… AS …)")
        return SqlError(first[:1].lower() + first[1:].rstrip("."), place)

    def _functions(self) -> list[str]:
        rows = self._con.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'scalar'"
        ).fetchall()
        return [cast(str, row[0]) for row in rows]


def check_types(types: Mapping[str, str], at: Mapping[str, Location | None]) -> list[SqlError]:
    """Return one error for each declared column type that DuckDB does not know."""
    con = duckdb.connect(config={"threads": 1, "enable_external_access": False})
    wrong: list[SqlError] = []
    for name, kind in types.items():
        try:
            con.execute(f"SELECT NULL::{kind}")
        except duckdb.Error:
            wrong.append(
                SqlError(
                    f"unknown type '{kind}' of column '{name}'",
                    at.get(name),
                    "use a DuckDB type such as VARCHAR, BIGINT, DOUBLE, BOOLEAN or TIMESTAMP",
                )
            )
    return wrong


def normal_type(kind: str) -> str:
    """Return a type as DuckDB writes it."""
    return str(duckdb.sqltype(kind))


def used_columns(query: QueryShape) -> dict[str, list[str]]:
    """Return the columns of each alias that the query reads, in order of name."""
    found: dict[str, set[str]] = {source.alias: set() for source in query.sources}
    exprs = [*query.where, *(output.expr for output in query.outputs)]
    for source in query.sources:
        exprs += source.filter
    for join in query.joins:
        for pair in join.keys:
            exprs += [pair.outer, pair.inner]
    for expr in exprs:
        for alias, name in expr.uses:
            if name != MATCHED:
                found[alias].add(name)
    return {alias: sorted(names) for alias, names in found.items()}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
