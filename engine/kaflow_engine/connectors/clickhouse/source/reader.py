"""Reads pages of a table of ClickHouse, between two keys; the server makes JSON of each row."""

from collections.abc import Mapping, Sequence
from typing import Any

from kaflow_engine.connectors.clickhouse.client import Caller, Server
from kaflow_engine.connectors.clickhouse.names import database_of, name
from kaflow_engine.connectors.clickhouse.source.table import LOOKING, Table, look
from kaflow_engine.connectors.clickhouse.source.types import key_text, key_value, value_sql
from kaflow_engine.connectors.pages.page import Fetched, Key
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.flow.origins.databases import ClickHouseParams
from kaflow_engine.model.columns import Column

_READING = "reading rows"
_SETTINGS = {
    "date_time_output_format": "'iso'",
    "output_format_json_quote_64bit_integers": "0",
    "output_format_json_quote_decimals": "0",
    "output_format_json_quote_denormals": "1",  # else they were NULL
    "output_format_json_escape_forward_slashes": "0",
    "output_format_json_named_tuples_as_objects": "1",
    "prefer_column_name_to_alias": "1",
}


_CHANGED = "the table is not what it was when the source was opened; start again"
_WHERE = "correct `where`: it is a condition in the SQL of ClickHouse, over the table alone"


class ClickHouseReader:
    """Pages of one table, by its sorting key: all rows of a key are in one page.

    Args:
        params: Which table.
        connection: How its server is reached.
        what: Reads it, as errors say it.
    """

    def __init__(self, params: ClickHouseParams, connection: Mapping[str, str], what: str) -> None:
        self._params, self._connection, self._what = params, connection, what
        self._server = Server(
            Caller(
                what=what,
                called=params.connection,
                connection=connection,
                rights=f"SELECT ON {name(database_of(params.table, connection))}.*",
                changed=_CHANGED if params.where is None else _WHERE,
                away=SourceAway,
                unfit=SourceUnfit,
            )
        )
        self._table: Table | None = None

    @property
    def place(self) -> str:
        """Which table."""
        return self._params.place

    def check(self) -> tuple[Column, ...]:
        """Look at the table and at the condition; return its columns."""
        table = self._look()
        conditions = self._conditions(table, None, None)
        self._server.rows(LOOKING, f"SELECT 1 FROM {table.name}{conditions} LIMIT 0")
        return table.columns

    def page(self, after: Key | None, size: int) -> Fetched:
        """Return about so many rows behind a key, in the order of their keys."""
        table = self._look()
        until, last = self._boundary(table, after, size)
        rows = () if until is None else self._rows(table, after, until)
        return Fetched(rows=rows, until=until, last=last)

    def reread(self, after: Key | None, until: Key) -> Sequence[bytes]:
        """Return the rows behind a key up to another one, as they are now."""
        return self._rows(self._look(), after, until)

    def greatest(self, partition: str, offset: str) -> Sequence[tuple[Any, Any]]:
        """Return the greatest offset of each partition, as columns have them; None: some row has
        none."""
        table, part, at = self._look(), name(partition), name(offset)
        known = f"if(count() = count({at}), max({at}), NULL)"
        conditions = self._conditions(table, None, None)
        query = f"SELECT {part}, {known} FROM {table.name}{conditions} GROUP BY {part}"
        return [(row[0], row[1]) for row in self._server.rows(_READING, query)]

    def rows_of(self, query: str) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query of the author's."""
        return [tuple(row) for row in self._server.rows(_READING, query)]

    def _boundary(self, table: Table, after: Key | None, size: int) -> tuple[Key | None, bool]:
        """Return the key with which a page ends, and whether no other follows.

        Rows that a merge removes are counted, too: a page may be smaller than it should be.
        """
        texts = ", ".join(key_text(part.sql, part.kind) for part in table.key)
        chosen = f"SELECT {texts} FROM {table.name}{self._conditions(table, after, None)}"
        ordered = ", ".join(part.sql for part in table.key)
        at = self._server.rows(_READING, f"{chosen} ORDER BY {ordered} LIMIT 1 OFFSET {size - 1}")
        if at:
            return tuple(map(str, at[0])), False
        descending = ", ".join(f"{part.sql} DESC" for part in table.key)
        end = self._server.rows(_READING, f"{chosen} ORDER BY {descending} LIMIT 1")
        return (tuple(map(str, end[0])) if end else None), True

    def _rows(self, table: Table, after: Key | None, until: Key) -> Sequence[bytes]:
        values = [
            value_sql(column.name, table.kinds[column.name], column.type)
            for column in table.columns
        ]
        order = [part.sql for part in table.key]
        if not table.merges:  # rows of one key have an order of their own, in each try
            every = ", ".join(name(column.name) for column in table.columns)
            order.append(f"cityHash64(toString(tuple({every})))")
        final = " FINAL" if table.merges else ""
        settings = ", ".join(f"{key} = {value}" for key, value in _SETTINGS.items())
        return self._server.lines(
            _READING,
            f"SELECT {', '.join(values)} FROM {table.name}{final}"
            f"{self._conditions(table, after, until)} ORDER BY {', '.join(order)} "
            f"SETTINGS {settings} FORMAT JSONEachRow",
        )

    def _conditions(self, table: Table, after: Key | None, until: Key | None) -> str:
        """Return the WHERE of rows behind a key up to another one.

        The first part of the key is compared by itself, too, for the index of the table.
        """
        found: list[str] = []
        for key, sign, near in ((after, ">", ">="), (until, "<=", "<=")):
            if key is not None:
                values = [
                    key_value(said, part.kind) for said, part in zip(key, table.key, strict=True)
                ]
                names = [part.sql for part in table.key]
                if len(names) > 1:
                    found.append(f"{names[0]} {near} {values[0]}")
                found.append(f"({', '.join(names)}) {sign} ({', '.join(values)})")
        if self._params.start_at is not None:
            first = table.key[0]
            found.append(f"{first.sql} >= {key_value(self._params.start_at, first.kind)}")
        if self._params.where is not None:
            found.append(f"({self._params.where}\n)")  # a comment ends with its line
        return f" WHERE {' AND '.join(found)}" if found else ""

    def _look(self) -> Table:
        if self._table is None:
            self._table = look(self._server, self._params, self._connection, self._what)
        return self._table
