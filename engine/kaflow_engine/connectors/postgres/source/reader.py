"""Reads pages of a table of PostgreSQL, between two keys; the server makes JSON of each row."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.pages.page import Fetched, Key
from kaflow_engine.connectors.postgres.client import connect, driver, verdict_on
from kaflow_engine.connectors.postgres.names import statement
from kaflow_engine.connectors.postgres.source.table import Table, look
from kaflow_engine.connectors.postgres.source.types import json_sql
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.flow.origins.databases import PostgresParams
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from psycopg import Connection

_ROW = "_kaflow_row"


class PostgresReader:
    """Pages of one table; each is read over a connection of its own, which may only read.

    Args:
        params: Which table.
        connection: How its database is reached.
        what: Reads it, as errors say it.
    """

    def __init__(self, params: PostgresParams, connection: Mapping[str, str], what: str) -> None:
        self._params, self._connection, self._what = params, connection, what
        self._table: Table | None = None

    @property
    def place(self) -> str:
        """Which table."""
        return self._params.place

    def check(self) -> tuple[Column, ...]:
        """Look at the table and at the condition; return its columns."""
        with self._open() as connection:
            table = self._look(connection)
            conditions = self._conditions(table, None, None)
            self._asked(connection, f"SELECT 1 FROM {table.name}{conditions} LIMIT 0")
        return table.columns

    def page(self, after: Key | None, size: int) -> Fetched:
        """Return about so many rows behind a key, in the order of their keys."""
        with self._open() as connection:
            table = self._look(connection)
            until, last = self._boundary(connection, table, after, size)
            rows = () if until is None else self._rows(connection, table, after, until)
        return Fetched(rows=rows, until=until, last=last)

    def reread(self, after: Key | None, until: Key) -> Sequence[bytes]:
        """Return the rows behind a key up to another one, as they are now."""
        with self._open() as connection:
            return self._rows(connection, self._look(connection), after, until)

    def greatest(self, partition: str, offset: str) -> Sequence[tuple[Any, Any]]:
        """Return the greatest offset of each partition, as columns have them; None: some row has
        none."""
        with self._open() as connection:
            table = self._look(connection)
            part, at = (_column(table, name) for name in (partition, offset))
            known = f"CASE count(*) WHEN count({at}) THEN max({at}) END"
            conditions = self._conditions(table, None, None)
            query = f"SELECT {part}, {known} FROM {table.name}{conditions} GROUP BY {part}"
            return self._asked(connection, query).fetchall()

    def rows_of(self, query: str) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query of the author's."""
        with self._open() as connection:
            return self._asked(connection, query).fetchall()

    def _boundary(
        self, connection: "Connection[Any]", table: Table, after: Key | None, size: int
    ) -> tuple[Key | None, bool]:
        """Return the key of the row with which a page ends, and whether no other follows."""
        texts = ", ".join(f"{_column(table, name)}::text" for name in table.key)
        chosen = f"SELECT {texts} FROM {table.name}{self._conditions(table, after, None)}"
        ordered = ", ".join(_column(table, name) for name in table.key)
        at = self._asked(
            connection, f"{chosen} ORDER BY {ordered} OFFSET {size - 1} LIMIT 1"
        ).fetchone()
        if at is not None:
            return tuple(at), False
        descending = ", ".join(f"{_column(table, name)} DESC" for name in table.key)
        end = self._asked(connection, f"{chosen} ORDER BY {descending} LIMIT 1").fetchone()
        return (None if end is None else tuple(end)), True

    def _rows(
        self, connection: "Connection[Any]", table: Table, after: Key | None, until: Key
    ) -> Sequence[bytes]:
        values = ", ".join(
            json_sql(table.name, column.name, table.kinds[column.name]) for column in table.columns
        )
        row = identifier(_ROW)
        text = f"row_to_json((SELECT {row} FROM (SELECT {values}) AS {row}))::text"
        if any(table.kinds[column.name] == "json" for column in table.columns):
            text = f"translate({text}, E'\\n\\r', '  ')"  # between its tokens, as it was written
        ordered = ", ".join(_column(table, name) for name in table.key)
        query = (
            f"SELECT {text} FROM {table.name}{self._conditions(table, after, until)} "
            f"ORDER BY {ordered}"
        )
        how = "FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01'"  # neither is in JSON
        with connection.cursor().copy(statement(f"COPY ({query}) TO STDOUT ({how})")) as copy:
            return [bytes(line)[:-1] for line in copy]

    def _conditions(self, table: Table, after: Key | None, until: Key | None) -> str:
        """Return the WHERE of rows behind a key up to another one."""
        found: list[str] = []
        for key, sign in ((after, ">"), (until, "<=")):
            if key is not None:
                names = ", ".join(_column(table, name) for name in table.key)
                values = ", ".join(
                    f"{literal(text)}::{table.kinds[name]}"
                    for name, text in zip(table.key, key, strict=True)
                )
                found.append(f"({names}) {sign} ({values})")
        if self._params.where is not None:
            found.append(f"({self._params.where}\n)")  # a comment ends with its line
        return f" WHERE {' AND '.join(found)}" if found else ""

    def _look(self, connection: "Connection[Any]") -> Table:
        if self._table is None:
            self._table = look(connection, self._params, self._what)
        return self._table

    def _asked(self, connection: "Connection[Any]", query: str) -> Any:
        return connection.execute(statement(query), prepare=False)

    @contextmanager
    def _open(self) -> "Generator[Connection[Any]]":
        """Open a connection; what the driver raises is one of our errors.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses.
        """
        psycopg = driver(SourceUnfit, "sources")
        try:
            with connect(self._connection, reads_only=True) as connection:
                yield connection
        except psycopg.Error as error:
            found = verdict_on(error)
            message = f"reading {self.place} for {self._what} failed: {found.text}"
            if found.away:
                raise SourceAway(message) from error
            raise SourceUnfit(message, hint=self._hint(error.sqlstate)) from error

    def _hint(self, code: str | None) -> str:
        called = f"postgres.connections.{self._params.connection}"
        if code is None or code.startswith("28"):
            return f"correct {called} in the configuration"
        if code == "42501":
            return f"grant SELECT on the table to the user of {called}"
        if code == "25006":
            return "a condition must not write"
        if self._params.where is not None and code.startswith(("42", "22")):
            return "correct `where`: it is a condition in the SQL of Postgres, over the table alone"
        return "the table is not what it was when the source was opened; start again"


def _column(table: Table, name: str) -> str:
    return f"{table.name}.{identifier(name)}"
