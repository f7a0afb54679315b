"""DuckDB queries over Arrow tables: short, single-threaded, without file or network access."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import duckdb

from kaflow_engine.duck.functions import catalogue
from kaflow_engine.duck.functions.signature import Function
from kaflow_engine.duck.wide.integers import mentions
from kaflow_engine.duck.wide.taught import teach

if TYPE_CHECKING:
    import pyarrow as pa  # planning needs names and types only, and it takes long to load

SETTINGS: Mapping[str, str | int | bool] = {
    "threads": 1,
    "memory_limit": "1GB",
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
}


_ALL = 2**62
_adding = Lock()


def connect() -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with one thread, UTC, bounded memory and no way out of it."""
    connection = duckdb.connect(config=dict(SETTINGS))
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Not enable_external_access: without it DuckDB does not find tables by Python name either.
    # Without files there are no extensions, and without extensions no network.
    connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
    connection.execute("SET lock_configuration = true")
    return connection


def cursor(sql: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return a fresh cursor on the database of this process; safe to use from several threads.

    Args:
        sql: All that will be asked, of no rows; None: that is not known.
    """
    return _database(os.getpid()).cursor(wide=sql is None or mentions(sql))


def query(sql: str, rows: "pa.Table | None" = None) -> "pa.Table":
    """Run `sql`, a SELECT that may read the table `rows`, in the order of its rows.

    DuckDB would hand filters to pyarrow, which cannot do all of them and then fails; they do not
    pass a LIMIT.
    """
    given = rows  # DuckDB finds it by name, which is cheaper than a view
    if given is not None:
        sql = f"WITH rows AS (FROM given LIMIT {_ALL}) {sql}"
    with cursor(sql if rows is None else None) as connection:
        return connection.execute(sql).to_arrow_table()


@contextmanager
def repeated(sql: str) -> "Generator[Callable[[pa.Table], pa.Table]]":
    """Give a function that runs `sql` over the table `rows` as `query` does, again and again.

    To open a cursor takes as long as to read a hundred rows.
    """
    text = f"WITH rows AS (FROM given LIMIT {_ALL}) {sql}"
    with cursor() as connection:

        def over(given: "pa.Table") -> "pa.Table":  # DuckDB finds it by name
            return connection.execute(text).to_arrow_table()

        yield over


def value(sql: str, parameters: Sequence[object] = ()) -> Any:
    """Return the first value of the first row of `sql`."""
    with cursor(sql) as connection:
        row = connection.execute(sql, list(parameters)).fetchone()
        return None if row is None else row[0]


class _Database:
    """A database and the functions that it knows."""

    def __init__(self) -> None:
        self._connection = connect()
        self._changes = 0
        self._taught = False
        self._functions: dict[str, Function] = {}

    def cursor(self, *, wide: bool = False) -> duckdb.DuckDBPyConnection:
        """Return a fresh cursor, which knows all functions that the process found.

        Args:
            wide: It also knows wide integers, which takes a moment to learn.
        """
        if wide and not self._taught:
            with _adding:
                if not self._taught:
                    teach(self._connection)
                    self._taught = True
        known = catalogue.known()
        if known.changes != self._changes:
            with _adding:
                changes = known.changes
                for key, function in [*known.functions.items()]:
                    self._add(key, function)
                self._changes = changes
        return self._connection.cursor()

    def _add(self, key: str, function: Function) -> None:
        """Let SQL call a function, in place of another one of the same name, version and types."""
        from kaflow_engine.duck.functions.vectors import create  # Arrow takes long to load

        before = self._functions.get(key)
        if before is None or before.call is not function.call:
            if before is not None:
                self._connection.remove_function(key)
            create(self._connection, key, function)
            self._functions[key] = function


@lru_cache(maxsize=1)
def _database(process: int) -> _Database:
    return _Database()  # keyed by process: a forked worker must not use its parent's database
