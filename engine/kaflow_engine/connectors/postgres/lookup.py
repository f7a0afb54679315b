"""Queries of a lookup join: rows of a PostgreSQL table that have some values, each as JSON."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.postgres.client import connect, driver, kept, verdict_on
from kaflow_engine.connectors.postgres.names import statement
from kaflow_engine.connectors.postgres.source.table import Table, look
from kaflow_engine.connectors.postgres.source.types import json_sql
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.flow.origins.databases import PostgresParams
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from psycopg import Connection

_ROW = "_kaflow_row"
_KEYS = "_kaflow_keys"
_KEY = "_kaflow_key_"
_AT_ONCE = 10_000
"""Values that one query asks for."""


@dataclass(frozen=True, slots=True)
class PostgresLookup:
    """Looks rows up, over a connection that this process keeps, and that may only read."""

    params: PostgresParams
    columns: tuple[Column, ...]
    """Those that are wanted of a row."""
    connection: Mapping[str, str] = field(repr=False)
    name: str
    """Of the source, for errors."""
    once: bool = False
    """Equal rows are one."""

    def with_values(
        self, on: Sequence[str], keys: Sequence[Sequence[str]]
    ) -> list[tuple[tuple[str, ...], str]]:
        """Return the rows that have some values: of each the values, and itself as JSON.

        Args:
            on: Columns of the table.
            keys: Their values as text, each once.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses.
        """
        found: list[tuple[tuple[str, ...], str]] = []
        if not keys:
            return found
        with self._open() as connection:
            table = look(connection, self.params, f"source '{self.name}'")
            self._check(table)
            sql = statement(self._query(table, on))
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                lists = [list(values) for values in zip(*some, strict=True)]
                rows = connection.execute(sql, lists, prepare=False)
                found += [(tuple(row[:-1]), row[-1]) for row in rows]
        return found

    def _check(self, table: Table) -> None:
        """Refuse a table that is no longer what was planned with: its values would go missing."""
        now = {column.name: column.type for column in table.columns}
        for column in self.columns:
            if now.get(column.name) != column.type:
                had = f"is {now[column.name]}" if column.name in now else "is gone"
                raise SourceUnfit(
                    f"column '{column.name}' of table '{self.params.table}' {had}, and was "
                    f"{column.type} when source '{self.name}' was planned",
                    hint="start the pipeline again; or declare the columns that it has",
                )

    def _query(self, table: Table, on: Sequence[str]) -> str:
        values = ", ".join(
            json_sql(table.name, column.name, table.kinds[column.name]) for column in self.columns
        )
        row = identifier(_ROW)
        made = f"row_to_json((SELECT {row} FROM (SELECT {values}) AS {row}))::text"
        keys = [f"{_KEYS}.{_KEY}{number}" for number in range(len(on))]
        wanted = " AND ".join(
            f"{table.name}.{identifier(name)} = {key}::{table.kinds[name]}"
            for name, key in zip(on, keys, strict=True)
        )
        where = f" WHERE ({self.params.where}\n)" if self.params.where is not None else ""
        listed = ", ".join("%s::text[]" for _ in on)
        names = ", ".join(f"{_KEY}{number}" for number in range(len(on)))
        select = "SELECT DISTINCT" if self.once else "SELECT"
        before = f"{select} {', '.join(keys)}, {made} FROM unnest("
        behind = f") AS {_KEYS} ({names}) JOIN {table.name} ON {wanted}{where}"
        return before.replace("%", "%%") + listed + behind.replace("%", "%%")

    @contextmanager
    def _open(self) -> "Generator[Connection[Any]]":
        psycopg = driver(SourceUnfit, "sources")
        opened = partial(connect, self.connection, reads_only=True)
        try:
            with kept(f"source {self.name}", self.connection["url"], opened) as connection:
                yield connection
        except psycopg.Error as error:
            raise self._said(error) from error

    def _said(self, error: Any) -> SourceAway | SourceUnfit:
        found = verdict_on(error)
        message = f"looking up source '{self.name}' failed: {found.text}"
        if found.away:
            return SourceAway(message)
        return SourceUnfit(
            message,
            hint="correct table_name, where or columns of the source, or grant SELECT to the user "
            f"of postgres.connections.{self.params.connection}",
        )
