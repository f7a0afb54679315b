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
from kaflow_engine.flow.sources import PostgresParams

if TYPE_CHECKING:
    from psycopg import Connection

_ROW = "_kaflow_row"
_kept: dict[tuple[int, str, str], tuple["Connection[Any]", dict[str, Table]]] = {}
_one_at_a_time = threading.RLock()


@dataclass(frozen=True, slots=True)
class PostgresRows:
    """Looks rows up, over a connection that this process keeps, and that may only read."""

    params: PostgresParams
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
        with self._open() as (connection, tables):
            table = tables.get(self.params.table)
            if table is None:
                table = look(connection, self.params, f"source '{self.name}'")
                tables[self.params.table] = table
            found = connection.execute(
                statement(self._query(table, on)),
                [list(values) for values in zip(*keys, strict=True)],
                prepare=False,
            )
            return [(tuple(row[:-1]), row[-1]) for row in found]

    def _query(self, table: Table, on: Sequence[str]) -> str:
        names = [column.name for column in self.params.columns] or [c.name for c in table.columns]
        values = ", ".join(json_sql(table.name, name, table.kinds[name]) for name in names)
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
    def _open(self) -> Generator[tuple["Connection[Any]", dict[str, Table]]]:
        psycopg = driver(SourceUnfit, "sources")
        place = (os.getpid(), self.name, self.connection["url"])
        with _one_at_a_time:
            try:
                kept = _kept.get(place)
                if kept is None or kept[0].closed:
                    kept = _kept[place] = connect(self.connection, reads_only=True), {}
                yield kept
            except BaseException as error:
                failed = _kept.pop(place, None)
                if failed is not None:
                    with suppress(Exception):
                        failed[0].close()
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
