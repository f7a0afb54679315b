"""Positions in topics, in a table of PostgreSQL as Streamling's state backend has it."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.postgres.client import open_connection, translated
from kaflow_engine.connectors.tables.retries import with_retries

if TYPE_CHECKING:
    from psycopg import Connection

_CONNECTION, _TABLE = "postgres_sink", "streamling.state"
_THERE = "SELECT to_regclass('streamling.state') IS NOT NULL"
_DDL = (
    "CREATE SCHEMA IF NOT EXISTS streamling",
    "CREATE TABLE IF NOT EXISTS streamling.state (namespace TEXT, key TEXT, data JSONB NOT NULL, "
    "created_at TIMESTAMPTZ DEFAULT NOW(), PRIMARY KEY(namespace, key))",
)
_READ = "SELECT key, data::text FROM streamling.state WHERE namespace = %s AND key = ANY (%s)"
_WRITE = (
    "INSERT INTO streamling.state (namespace, key, data) VALUES (%s, %s, %s) "
    "ON CONFLICT (namespace, key) DO UPDATE SET data = excluded.data"
)
_LOCK = 0x6B61666C6F7700


class PostgresPositions:
    """The table of the database that sinks write to."""

    def __init__(self, connections: Connections) -> None:
        self._output = Output(
            name="state backend",
            place=_TABLE,
            columns=(),
            settings={"table": _TABLE, "connection": _CONNECTION},
            connection=connections.of("postgres", _CONNECTION),
        )

    def __str__(self) -> str:
        return _TABLE

    def read(self, namespace: str, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the data of those keys that are there."""
        with self._opened("reading positions") as connection:
            return dict(connection.execute(_READ, [namespace, [*keys]]).fetchall())

    def write(self, namespace: str, data: Mapping[str, str]) -> None:
        """Put data under keys, all of it or nothing."""
        with_retries(lambda: self._put([(namespace, *each) for each in sorted(data.items())]))

    def _put(self, rows: list[tuple[str, str, str]]) -> None:
        with self._opened("writing positions") as connection, connection.transaction():
            connection.cursor().executemany(_WRITE, rows)

    @contextmanager
    def _opened(self, doing: str) -> "Generator[Connection[Any]]":
        """Open a connection to a database that has the table."""
        with open_connection(self._output) as connection, translated(self._output, doing):
            if connection.execute(_THERE).fetchone() != (True,):
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                    for ddl in _DDL:
                        connection.execute(ddl)
            yield connection
