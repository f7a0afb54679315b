"""DuckDB as a binder: types of expressions, without any data."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, Signature
from threading import Lock
from typing import Any

import duckdb
from duckdb.func import SPECIAL

from kaflow_engine.duck.wide.integers import is_digits, is_wide, mentions
from kaflow_engine.duck.wide.taught import teach

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
    with _cursor(select) as connection:
        return tuple(str(kind) for kind in connection.sql(select).types)


def described(select: str) -> tuple[tuple[str, str], ...]:
    """Return the names and types of the columns of a SELECT, which is not run.

    Raises:
        Error: DuckDB refuses it.
    """
    with _cursor(select) as connection:
        found = connection.sql(select)
        return tuple(zip(found.columns, map(str, found.types), strict=True))


def casts(text: str, kind: str) -> bool:
    """Tell whether a text can be read as a value of a type."""
    if is_wide(kind):
        return is_digits(text, kind)
    with _database(os.getpid()).cursor() as connection:
        row = connection.execute(f"SELECT TRY_CAST(? AS {kind}) IS NOT NULL", [text]).fetchone()
    return row is not None and bool(row[0])


_teaching = Lock()
_declared: dict[str, tuple[list[str], str]] = {}
# of the process, as its database is


def declare(name: str, arguments: Sequence[str], returns: str) -> None:
    """Let expressions call a function that is no part of DuckDB; none is calculated here.

    Args:
        name: What SQL calls it.
        arguments: Their types.
        returns: The type of what it gives.
    """
    if name not in _declared:
        _declared[name] = (list(arguments), returns)
        _create(_database(os.getpid()), name)


def _create(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    arguments, returns = _declared[name]
    known = connection.execute("FROM duckdb_functions() WHERE function_name = ?", [name])
    if known.fetchone() is None:
        connection.create_function(
            name, taking(len(arguments), _not_here), [*arguments], returns, null_handling=SPECIAL
        )


def taking(arguments: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that says it takes so many arguments: DuckDB counts them."""
    places = (Parameter(f"a{place}", Parameter.POSITIONAL_ONLY) for place in range(arguments))

    def called(*values: Any) -> Any:
        return call(*values)

    called.__dict__["__signature__"] = Signature(list(places))
    return called


def _not_here(*values: object) -> None:
    raise ValueError("it is not calculated while a file is checked")


@lru_cache(maxsize=1024)
def type_name(kind: str) -> str:
    """Return a type as DuckDB writes it.

    Raises:
        Error: DuckDB knows no such type.
    """
    if is_wide(kind.upper()):
        return kind.upper()
    with _cursor(kind) as connection:
        return str(connection.sqltype(kind))


@lru_cache(maxsize=1)
def functions() -> frozenset[str]:
    """Return the names of all scalar functions and macros."""
    sql = "SELECT function_name FROM duckdb_functions() WHERE internal AND "
    sql += "function_type IN ('scalar', 'macro')"
    with _database(os.getpid()).cursor() as connection:
        return frozenset(str(row[0]) for row in connection.execute(sql).fetchall())


@lru_cache(maxsize=1)
def aggregates() -> frozenset[str]:
    """Return the names of all aggregate functions, and of functions that are none without OVER."""
    sql = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
    with _database(os.getpid()).cursor() as connection:
        return frozenset(str(row[0]) for row in connection.execute(sql).fetchall())


@lru_cache(maxsize=1024)
def interval(sql: str) -> tuple[int, int]:
    """Return the months of a constant interval, and its microseconds besides.

    Raises:
        Error: It cannot be calculated, or is no interval.
    """
    months = "datepart('year', i) * 12 + datepart('month', i)"
    select = (
        f"SELECT m, epoch_us(i - to_months(m::INTEGER)) "
        f"FROM (SELECT i, {months} AS m FROM (SELECT CAST({sql} AS INTERVAL) AS i))"
    )
    return _numbers(select)


@lru_cache(maxsize=1024)
def moment(sql: str) -> tuple[int, int]:
    """Return the month of a constant time, counted from January 1970, and its epoch microseconds.

    Raises:
        Error: It cannot be calculated, or is no time.
    """
    months = "datepart('year', t) * 12 + datepart('month', t) - 1970 * 12 - 1"
    return _numbers(f"SELECT {months}, epoch_us(t) FROM (SELECT CAST({sql} AS TIMESTAMP) AS t)")


def _numbers(select: str) -> tuple[int, int]:
    with _database(os.getpid()).cursor() as connection:
        row = connection.execute(select).fetchone()
    if row is None or row[0] is None or row[1] is None:
        raise Error("it is NULL")
    return int(row[0]), int(row[1])


def _cursor(sql: str) -> duckdb.DuckDBPyConnection:
    """Return a cursor that understands a text."""
    if mentions(sql):
        with _teaching:
            _taught(os.getpid())
    return _database(os.getpid()).cursor()


@lru_cache(maxsize=1)
def _taught(process: int) -> None:
    """Teach the database wide integers: it takes longer than most plans, which have none."""
    teach(_database(process))


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Open the database of a process: a forked one must not use that of its parent."""
    connection = duckdb.connect(config=dict(SETTINGS))
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    for name in [*_declared]:
        _create(connection, name)
    return connection
