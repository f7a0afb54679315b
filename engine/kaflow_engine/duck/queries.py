"""DuckDB queries over Arrow tables: short, single-threaded, without file or network access."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import duckdb

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


def connect() -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with one thread, UTC, bounded memory and no way out of it."""
    connection = duckdb.connect(config=dict(SETTINGS))
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Not enable_external_access: without it DuckDB does not find tables by Python name either.
    # Without files there are no extensions, and without extensions no network.
    connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
    connection.execute("SET lock_configuration = true")
    return connection


def cursor() -> duckdb.DuckDBPyConnection:
    """Return a fresh cursor on the database of this process; safe to use from several threads."""
    return _database(os.getpid()).cursor()


def query(sql: str, rows: "pa.Table | None" = None) -> "pa.Table":
    """Run `sql`, a SELECT that may read the table `rows`, in the order of its rows.

    DuckDB would hand filters to pyarrow, which cannot do all of them and then fails; they do not
    pass a LIMIT.
    """
    given = rows  # DuckDB finds it by name, which is cheaper than a view
    if given is not None:
        sql = f"WITH rows AS (FROM given LIMIT {_ALL}) {sql}"
    with cursor() as connection:
        return connection.execute(sql).to_arrow_table()


def value(sql: str, parameters: Sequence[object] = ()) -> Any:
    """Return the first value of the first row of `sql`."""
    with cursor() as connection:
        row = connection.execute(sql, list(parameters)).fetchone()
        return None if row is None else row[0]


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:
    return connect()  # keyed by process: a forked worker must not use its parent's database
