"""Positions in topics, in a file of SQLite as Streamling's state backend has it."""

import sqlite3
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.errors import SinkAway, SinkUnfit

FILE = "state.db"
"""Of the folder in which the program runs."""
_WAIT = 5.0
"""Seconds that SQLite waits for a lock."""
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY = 0xFF
"""The bits of an error code that say of which kind it is."""
_DDL = (
    "CREATE TABLE IF NOT EXISTS state (namespace TEXT, key TEXT, data TEXT NOT NULL, "
    "created_at DATETIME DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY(namespace, key))"
)
_READ = "SELECT key, data FROM state WHERE namespace = ?"
_WRITE = (
    "INSERT INTO state (namespace, key, data) VALUES (?, ?, ?) "
    "ON CONFLICT (namespace, key) DO UPDATE SET data = excluded.data"
)


class SQLitePositions:
    """The table of a file, which is made where it is not there."""

    def __init__(self, connections: Connections) -> None:
        self._path = Path(FILE).absolute()

    def __str__(self) -> str:
        return str(self._path)

    def read(self, namespace: str, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the data of those keys that are there."""
        wanted = frozenset(keys)
        with self._opened("read") as connection:
            rows = connection.execute(_READ, [namespace]).fetchall()
        return {key: data for key, data in rows if key in wanted}

    def write(self, namespace: str, data: Mapping[str, str]) -> None:
        """Put data under keys, all of it or nothing."""
        with self._opened("written") as connection, connection:
            connection.execute("BEGIN")
            connection.executemany(_WRITE, [(namespace, *each) for each in sorted(data.items())])

    @contextmanager
    def _opened(self, done: str) -> Generator[sqlite3.Connection]:
        try:
            with closing(
                sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)
            ) as connection:
                connection.execute(_DDL)
                yield connection
        except sqlite3.Error as error:
            message = f"positions cannot be {done} in '{self._path}': {error}"
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _BUSY:
                raise SinkAway(message) from error
            raise SinkUnfit(
                message,
                hint="it must be a database of SQLite with a table 'state' in a folder "
                "that may be written",
            ) from error
