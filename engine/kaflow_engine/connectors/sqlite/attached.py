"""Tables of SQLite files that are looked up: rows that have some values, each as JSON."""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.connectors.attached.columns import columns_of
from kaflow_engine.connectors.attached.contract import (
    KEY,
    KEYS,
    PLACE,
    Bound,
    away,
    unfit,
    where_sql,
)
from kaflow_engine.connectors.attached.files import (
    CORRECT,
    no_database,
    no_table,
    require_file,
)
from kaflow_engine.connectors.sqlite.types import affinity, json_value, key_value, read_as
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.origins.databases import SQLiteParams
from kaflow_engine.model.columns import Column

_AWAY = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
)
"""Another program has locked the file, or whoever replaces it is about to."""
_PRIMARY = 0xFF
"""The bits of an error code that say of which kind it is."""
_WAIT = 5.0
"""Seconds that SQLite itself waits for a lock."""
_COLUMNS = "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid"
_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"


class SQLiteDatabase:
    """Opens a file for each look, so that one that was replaced is seen."""

    @contextmanager
    def open(
        self, params: SQLiteParams, connection: Mapping[str, str], name: str
    ) -> "Generator[SQLiteTable]":
        """Open a table; SQLite refuses whatever writes."""
        require_file(params.path, name)
        place = f"{Path(params.path).as_uri()}?mode=ro"
        try:
            with closing(
                sqlite3.connect(place, timeout=_WAIT, isolation_level=None, uri=True)
            ) as opened:
                yield _look(opened, params, name)
        except sqlite3.Error as error:
            raise _ours(params, name, error) from error


@dataclass(frozen=True, slots=True)
class SQLiteTable:
    """A table of an open file."""

    connection: sqlite3.Connection
    params: SQLiteParams
    kinds: Mapping[str, str]
    """By column, its declared type."""
    columns: tuple[Column, ...]

    def check(self) -> None:
        """Let SQLite compile the condition."""
        self.connection.execute(f"SELECT 1 FROM {self._name}{where_sql(self.params)} LIMIT 0")

    def find(
        self,
        wanted: Sequence[Column],
        on: Sequence[str],
        keys: Sequence[Sequence[str]],
        *,
        once: bool,
    ) -> Iterator[tuple[int, str]]:
        """Yield the rows that have some values."""
        self._put(on, keys)
        made = _as_json(wanted)
        for place, *values in self.connection.execute(self._query(wanted, on, once)):
            yield place, made(values)

    def scan(self, wanted: Sequence[Column], bounds: Sequence[Bound], most: int) -> Iterator[str]:
        """Yield all rows within some bounds."""
        types = {column.name: column.type for column in self.columns}
        conditions = [f"{identifier(each.column)} {each.operator} ?" for each in bounds]
        columns = ", ".join(identifier(column.name) for column in wanted) or "NULL"
        rows = f"{self._name}{where_sql(self.params, conditions)}"
        values = [key_value(each.text, types[each.column]) for each in bounds]
        made = _as_json(wanted)
        for row in self.connection.execute(
            f"SELECT {columns} FROM {rows} LIMIT ?", [*values, most]
        ):
            yield made(row[: len(wanted)])

    @property
    def _name(self) -> str:
        return identifier(self.params.table)

    def _put(self, on: Sequence[str], keys: Sequence[Sequence[str]]) -> None:
        """Make a table of values, which is in memory and none of the file.

        Its columns have the affinities of those of the table, so that SQLite makes of the values
        what it has made of those that are stored.
        """
        types = {column.name: column.type for column in self.columns}
        columns = [f"{KEY}{n} {affinity(self.kinds[name])}" for n, name in enumerate(on)]
        self.connection.execute("PRAGMA temp_store = MEMORY")
        self.connection.execute(f"DROP TABLE IF EXISTS temp.{KEYS}")
        self.connection.execute(
            f"CREATE TEMP TABLE {KEYS} ({', '.join([f'{PLACE} INTEGER', *columns])})"
        )
        marks = ", ".join("?" for _ in range(len(on) + 1))
        self.connection.execute("BEGIN")
        self.connection.executemany(
            f"INSERT INTO temp.{KEYS} VALUES ({marks})",
            (
                (place, *(key_value(text, types[name]) for name, text in zip(on, key, strict=True)))
                for place, key in enumerate(keys)
            ),
        )
        self.connection.execute("COMMIT")

    def _query(self, wanted: Sequence[Column], on: Sequence[str], once: bool) -> str:
        values = ", ".join(f"{self._name}.{identifier(column.name)}" for column in wanted)
        equal = " AND ".join(
            f"{self._name}.{identifier(name)} = {KEYS}.{KEY}{n}" for n, name in enumerate(on)
        )
        select = "SELECT DISTINCT" if once else "SELECT"
        return (
            f"{select} {KEYS}.{PLACE}, {values} FROM temp.{KEYS} AS {KEYS} "
            f"JOIN main.{self._name} AS {self._name} ON {equal}{where_sql(self.params)}"
        )


def _as_json(wanted: Sequence[Column]) -> Callable[[Sequence[object]], str]:
    """Return a function that makes JSON of the values of a row."""
    names = [json.dumps(column.name, ensure_ascii=False) for column in wanted]

    def made(values: Sequence[object]) -> str:
        found = (
            f"{name}:{json_value(value, column.type)}"
            for name, value, column in zip(names, values, wanted, strict=True)
        )
        return f"{{{','.join(found)}}}"

    return made


def _look(connection: sqlite3.Connection, params: SQLiteParams, name: str) -> SQLiteTable:
    found = connection.execute(_COLUMNS, (params.table,)).fetchall()
    if not found:
        raise no_table(params, name, (each for (each,) in connection.execute(_TABLES)))
    kinds: dict[str, str] = dict(found)
    return SQLiteTable(connection, params, kinds, columns_of(params, name, kinds, read_as))


def _ours(params: SQLiteParams, name: str, error: sqlite3.Error) -> KaflowError:
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code & _PRIMARY in _AWAY:
        return away(name, str(error))
    if code & _PRIMARY == sqlite3.SQLITE_NOTADB:
        return no_database(params, name, "SQLite")
    return unfit(name, str(error), CORRECT)
