"""Rows of a table of PostgreSQL that have some values; the server makes JSON of each row."""

import os
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.postgres.client import connect, driver, verdict_on
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
_kept: dict[tuple[int, str, str], "Connection[Any]"] = {}
_one_at_a_time = threading.RLock()


@dataclass(frozen=True, slots=True)
class PostgresRows:
    """Looks rows up, over a connection that this process keeps, and that may only read."""

    params: PostgresParams
    columns: tuple[Column, ...]
    """Those that are wanted of a row."""
    connection: Mapping[str, str]
    name: str
    """Of the source, for errors."""

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
        with self._open() as connection:
            table = look(connection, self.params, f"source '{self.name}'")
            self._check(table)
            lists = [list(values) for values in zip(*keys, strict=True)]
            found = connection.execute(statement(self._query(table, on)), lists, prepare=False)
            return [(tuple(row[:-1]), row[-1]) for row in found]

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
        asked = ", ".join(f"k{number}" for number in range(len(on)))
        wanted = " AND ".join(
            f"{table.name}.{identifier(name)} = k{number}::{table.kinds[name]}"
            for number, name in enumerate(on)
        )
        lists = ", ".join("%s::text[]" for _ in on)
        where = f" WHERE ({self.params.where}\n)" if self.params.where is not None else ""
        if "%" in where:
            where = where.replace("%", "%%")
        return (
            f"SELECT {asked}, {made.replace('%', '%%')} FROM unnest({lists}) AS _kaflow_keys "
            f"({asked}) JOIN {table.name} ON {wanted}{where}"
        )

    @contextmanager
    def _open(self) -> "Generator[Connection[Any]]":
        psycopg = driver(SourceUnfit, "sources")
        place = (os.getpid(), self.name, self.connection["url"])
        with _one_at_a_time:
            try:
                kept = _kept.get(place)
                if kept is None or kept.closed:
                    kept = _kept[place] = connect(self.connection, reads_only=True)
                yield kept
            except BaseException as error:
                failed = _kept.pop(place, None)
                if failed is not None:
                    with suppress(Exception):
                        failed.close()
                if isinstance(error, psycopg.Error):
                    raise self._said(error) from error
                raise

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
