"""Files of SQLite and DuckDB, and pipelines on this machine that look their tables up."""
# pyright: basic

import sqlite3
from contextlib import closing

import duckdb

from tests.engine.transforms.lookup_here import Running

OPEN = {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}
QUERY = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"
NUMBERED = "CREATE TABLE users (id INTEGER, name VARCHAR)"


class File:
    """A file of a database, and pipelines that look its table up."""

    def __init__(self, kind, path):
        self.kind, self.path = kind, path

    def __call__(self, *texts):
        with closing(OPEN[self.kind](str(self.path))) as connection:
            for text in texts:
                connection.execute(text)
            connection.commit()

    def fill(self, rows):
        with closing(OPEN[self.kind](str(self.path))) as connection:
            connection.execute("CREATE TABLE users (id INTEGER, name VARCHAR, number INTEGER)")
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO users VALUES (?, ?, ?)", rows)
            connection.commit()

    def running(self, query, columns, about=(), **how):
        said = {"type": self.kind, "path": str(self.path), "table_name": "users"}
        return Running(None, query, columns, {**said, **dict(about)}, **how)
