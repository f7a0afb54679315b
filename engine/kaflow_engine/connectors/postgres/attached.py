"""Tables of PostgreSQL that are looked up: rows that have some values, each as JSON."""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.attached.contract import (
    KEY,
    KEYS,
    PLACE,
    Bound,
    away,
    unfit,
    where_sql,
)
from kaflow_engine.connectors.postgres.client import connect, driver, kept, verdict_on
from kaflow_engine.connectors.postgres.names import statement
from kaflow_engine.connectors.postgres.source.table import Table, look
from kaflow_engine.connectors.postgres.source.types import json_sql
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.databases import PostgresParams
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from psycopg import Connection

_ROW = "_kaflow_row"
_MARK = "\0"
"""Stands where a value is given, until what is a percent sign is known."""
_DIGITS = re.compile(r"\(\d+(,\d+)?\)")
"""What a type says of lengths, to which a value of a bound must not be cut."""


class PostgresDatabase:
    """Opens tables over a connection that a process keeps for each source."""

    @contextmanager
    def open(
        self, params: PostgresParams, connection: Mapping[str, str], name: str
    ) -> "Generator[PostgresTable]":
        """Open a table; the server refuses whatever writes."""
        psycopg = driver(SourceUnfit, "sources")
        opened = partial(connect, connection, reads_only=True)
        try:
            with kept(f"source {name}", connection["url"], opened) as each:
                yield PostgresTable(each, params, look(each, params, f"source '{name}'"))
        except psycopg.Error as error:
            found = verdict_on(error)
            if found.away:
                raise away(name, found.text) from error
            raise unfit(
                name,
                found.text,
                "correct table_name, where or columns of the source, or grant SELECT to the user "
                f"of postgres.connections.{params.connection}",
            ) from error


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table over an open connection."""

    connection: "Connection[Any]"
    params: PostgresParams
    table: Table

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those that are read of it."""
        return self.table.columns

    def check(self) -> None:
        """Let the server plan the condition."""
        query = f"SELECT 1 FROM {self.table.name}{where_sql(self.params)} LIMIT 0"
        self.connection.execute(statement(query), prepare=False)

    def find(
        self,
        wanted: Sequence[Column],
        on: Sequence[str],
        keys: Sequence[Sequence[str]],
        *,
        once: bool,
    ) -> Iterable[tuple[int, str]]:
        """Return the rows that have some values."""
        lists = [list(values) for values in zip(*keys, strict=True)]
        sql = statement(self._query(wanted, on, once))
        return self.connection.execute(sql, lists, prepare=False)

    def scan(self, wanted: Sequence[Column], bounds: Sequence[Bound], most: int) -> Iterable[str]:
        """Yield all rows within some bounds."""
        table = self.table
        conditions = [
            f"{table.name}.{identifier(bound.column)} {bound.operator} "
            f"{_MARK}::text::{_DIGITS.sub('', table.kinds[bound.column])}"
            for bound in bounds
        ]
        rows = f"{table.name}{where_sql(self.params, conditions)}"
        query = f"SELECT {self._row(wanted)} FROM {rows} LIMIT {_MARK}"
        sql = statement(query.replace("%", "%%").replace(_MARK, "%s"))
        values = (*(bound.text for bound in bounds), most)
        for (row,) in self.connection.execute(sql, values, prepare=False):
            yield row

    def _row(self, wanted: Sequence[Column]) -> str:
        """Return SQL of a row as JSON."""
        table, row = self.table, identifier(_ROW)
        values = ", ".join(
            json_sql(table.name, column.name, table.kinds[column.name]) for column in wanted
        )
        return f"row_to_json((SELECT {row} FROM (SELECT {values}) AS {row}))::text"

    def _query(self, wanted: Sequence[Column], on: Sequence[str], once: bool) -> str:
        table, made = self.table, self._row(wanted)
        names = [f"{KEY}{number}" for number in range(len(on))]
        equal = " AND ".join(
            f"{table.name}.{identifier(name)} = {KEYS}.{key}::{table.kinds[name]}"
            for name, key in zip(on, names, strict=True)
        )
        listed = ", ".join("%s::text[]" for _ in on)
        select = "SELECT DISTINCT" if once else "SELECT"
        before = f"{select} {KEYS}.{PLACE} - 1, {made} FROM unnest("
        behind = (
            f") WITH ORDINALITY AS {KEYS} ({', '.join([*names, PLACE])}) "
            f"JOIN {table.name} ON {equal}{where_sql(self.params)}"
        )
        return before.replace("%", "%%") + listed + behind.replace("%", "%%")
