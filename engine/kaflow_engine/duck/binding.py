"""DuckDB as a binder: types of expressions, without any data."""

import os
from collections.abc import Mapping
from functools import lru_cache

import duckdb

Error = duckdb.Error

SETTINGS: Mapping[str, str | int | bool] = {
    "threads": 1,
    "memory_limit": "1GB",
    "enable_external_access": False,
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
}


def bind(select: str) -> tuple[str, ...]:
    """Return the types of the columns of a SELECT, which is not run.

    Raises:
        Error: DuckDB refuses it.
    """
    with _database(os.getpid()).cursor() as connection:
        return tuple(str(kind) for kind in connection.sql(select).types)


def casts(text: str, kind: str) -> bool:
    """Tell whether a text can be read as a value of a type."""
    with _database(os.getpid()).cursor() as connection:
        row = connection.execute(f"SELECT TRY_CAST(? AS {kind}) IS NOT NULL", [text]).fetchone()
    return row is not None and bool(row[0])


@lru_cache(maxsize=1024)
def type_name(kind: str) -> str:
    """Return a type as DuckDB writes it.

    Raises:
        Error: DuckDB knows no such type.
    """
    with _database(os.getpid()).cursor() as connection:
        return str(connection.sqltype(kind))


@lru_cache(maxsize=1)
def functions() -> frozenset[str]:
    """Return the names of all scalar functions and macros."""
    sql = "SELECT function_name FROM duckdb_functions() WHERE function_type IN ('scalar', 'macro')"
    with _database(os.getpid()).cursor() as connection:
        return frozenset(str(row[0]) for row in connection.execute(sql).fetchall())


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Open the database of a process: a forked one must not use that of its parent."""
    connection = duckdb.connect(config=dict(SETTINGS))
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection
