"""Tables that statements make of files: made once in a process, and again when a file changes."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import duckdb

from kaflow_engine.connectors.attached.columns import columns_of
from kaflow_engine.connectors.attached.contract import away, unfit
from kaflow_engine.connectors.attached.files import require_file
from kaflow_engine.connectors.duckdb.attached import DuckDBTable, said_by
from kaflow_engine.connectors.duckdb.types import read_as
from kaflow_engine.duck.queries import SETTINGS
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.errors import UnknownName
from kaflow_engine.flow.origins.databases import SqlParams

_ALLOWED = (duckdb.StatementType.CREATE, duckdb.StatementType.INSERT)
_CORRECT = "correct the SQL; it may read what `files` lists, and nothing else"
_making = Lock()

Stamp = tuple[int, int, int]
"""What tells that a file is the same one: its inode, its size and when it was written."""


@dataclass(frozen=True, slots=True)
class _Made:
    stamps: tuple[Stamp, ...]
    database: duckdb.DuckDBPyConnection


_made: dict[tuple[int, str, tuple[str, ...]], _Made] = {}
"""By process, statements and files."""


class MadeByStatements:
    """Runs statements in a database of its own, which sees the files that are named alone."""

    @contextmanager
    def open(
        self, params: SqlParams, connection: Mapping[str, str], name: str
    ) -> "Generator[DuckDBTable]":
        """Open the table as its files are now."""
        with _making:
            opened = _database(params, name).cursor()
        try:
            yield _look(opened, params, name)
        except duckdb.Error as error:
            raise unfit(name, said_by(error), _CORRECT) from error
        finally:
            opened.close()


def _database(params: SqlParams, name: str) -> duckdb.DuckDBPyConnection:
    """Return the database with the table; it is made again where a file has changed."""
    key = (os.getpid(), params.sql, params.files)
    stamps = tuple(_stamp(path, name) for path in params.files)
    known = _made.get(key)
    if known is None or known.stamps != stamps:
        known = _made[key] = _Made(stamps, _run(params, name))
    return known.database


def _stamp(path: str, name: str) -> Stamp:
    require_file(path, name)
    about = os.stat(path)
    return about.st_ino, about.st_size, about.st_mtime_ns


def _run(params: SqlParams, name: str) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(config={**SETTINGS, "python_enable_replacements": False})
    try:
        database.execute("SET GLOBAL TimeZone = 'UTC'")
        paths = ", ".join(map(literal, params.files))
        database.execute(f"SET allowed_paths = [{paths}]")
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        for statement in database.extract_statements(params.sql):
            if statement.type not in _ALLOWED:
                kind = statement.type.name.replace("_", " ")
                said = f"a statement is {kind}, and makes no table"
                raise unfit(name, said, "write CREATE TABLE and INSERT alone")
            database.execute(statement)
    except duckdb.IOException as error:
        raise away(name, said_by(error)) from error
    except duckdb.Error as error:
        raise unfit(name, said_by(error), _CORRECT) from error
    return database


def _look(connection: duckdb.DuckDBPyConnection, params: SqlParams, name: str) -> DuckDBTable:
    try:
        found = connection.execute(f"DESCRIBE {identifier(params.table)}").fetchall()
    except duckdb.CatalogException as error:
        tables = [each for (each,) in connection.execute("SHOW TABLES").fetchall()]
        hint = UnknownName("table", params.table, tables).hint or _CORRECT
        raise unfit(name, f"the SQL makes no table '{params.table}'", hint) from error
    kinds: dict[str, str] = {column: kind for column, kind, *_ in found}
    return DuckDBTable(connection, params, kinds, columns_of(params, name, kinds, read_as))
