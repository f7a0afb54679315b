"""Tables of MySQL and MariaDB that are looked up: rows that have some values, each as JSON."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from kaflow_engine.connectors.mysql.client import code_and_text, connect, driver, is_away
from kaflow_engine.connectors.mysql.types import (
    Kind,
    json_value,
    key_sql,
    key_text,
    read_as,
    value_sql,
)
from kaflow_engine.errors import KaflowError, SourceUnfit
from kaflow_engine.flow.origins.databases import MySQLParams
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from pymysql.connections import Connection

_MARK = "\0"
"""Stands where a value is given, until what is a percent sign is known."""
_COLUMNS = (
    "SELECT column_name, column_type, character_set_name, collation_name "
    "FROM information_schema.columns WHERE table_schema = coalesce(nullif(%s, ''), database()) "
    "AND table_name = %s ORDER BY ordinal_position"
)


class MySQLDatabase:
    """Opens a connection for each look."""

    @contextmanager
    def open(
        self, params: MySQLParams, connection: Mapping[str, str], name: str
    ) -> "Generator[MySQLTable]":
        """Open a table; the server refuses whatever writes."""
        pymysql = driver()
        try:
            with closing(connect(connection)) as opened:
                yield _look(opened, params, name)
        except pymysql.MySQLError as error:
            raise _ours(params, name, error) from error
        except RuntimeError as error:  # so the driver says that it cannot encrypt the password
            raise unfit(
                name,
                "the server wants the password encrypted",
                f"add ca to mysql.connections.{params.connection}: then the connection is; or "
                "install cryptography",
            ) from error


@dataclass(frozen=True, slots=True)
class MySQLTable:
    """A table over an open connection."""

    connection: "Connection[Any]"
    params: MySQLParams
    kinds: Mapping[str, Kind]
    """By column, the type that it has there."""
    columns: tuple[Column, ...]

    def check(self) -> None:
        """Let the server read the condition."""
        _asked(self.connection, f"SELECT 1 FROM {self._name}{where_sql(self.params)} LIMIT 0")

    def find(
        self,
        wanted: Sequence[Column],
        on: Sequence[str],
        keys: Sequence[Sequence[str]],
        *,
        once: bool,
    ) -> Iterator[tuple[int, str]]:
        """Yield the rows that have some values."""
        types = {column.name: column.type for column in self.columns}
        given = [
            [key_text(text, types[name]) for name, text in zip(on, key, strict=True)]
            for key in keys
        ]
        query = self._query(wanted, on, once)
        for place, *values in _asked(self.connection, query, json.dumps(given)):
            yield int(place) - 1, self._as_json(wanted, values)

    def scan(self, wanted: Sequence[Column], bounds: Sequence[Bound], most: int) -> Iterator[str]:
        """Yield all rows within some bounds."""
        types = {column.name: column.type for column in self.columns}
        own = [value_sql(self._column(each.column), self.kinds[each.column]) for each in bounds]
        conditions = [f"{v} {e.operator} {_MARK}" for v, e in zip(own, bounds, strict=True)]
        values = [value_sql(self._column(c.name), self.kinds[c.name]) for c in wanted] or ["NULL"]
        rows = f"{self._name}{where_sql(self.params, conditions)}"
        query = f"SELECT {', '.join(values)} FROM {rows} LIMIT {most}"
        marked = query.replace("%", "%%").replace(_MARK, "%s")
        keys = [key_text(each.text, types[each.column]) for each in bounds]
        for row in _asked(self.connection, marked if keys else query, *keys):
            yield self._as_json(wanted, row[: len(wanted)])

    def _as_json(self, wanted: Sequence[Column], values: Sequence[Any]) -> str:
        found = (
            f"{json.dumps(column.name, ensure_ascii=False)}:"
            f"{json_value(value, self.kinds[column.name], column.type)}"
            for value, column in zip(values, wanted, strict=True)
        )
        return f"{{{','.join(found)}}}"

    @property
    def _name(self) -> str:
        return ".".join(map(_quoted, self.params.table.split(".")))

    def _column(self, name: str) -> str:
        return f"{self._name}.{_quoted(name)}"

    def _query(self, wanted: Sequence[Column], on: Sequence[str], once: bool) -> str:
        values = [value_sql(self._column(c.name), self.kinds[c.name]) for c in wanted]
        keys = [f"{KEY}{n} {key_sql(self.kinds[name])} PATH '$[{n}]'" for n, name in enumerate(on)]
        equal = " AND ".join(
            f"{value_sql(self._column(name), self.kinds[name])} = {KEYS}.{KEY}{n}"
            for n, name in enumerate(on)
        )
        select = "SELECT DISTINCT" if once else "SELECT"
        before = f"{select} {', '.join([f'{KEYS}.{PLACE}', *values])} FROM JSON_TABLE("
        columns = ", ".join([f"{PLACE} FOR ORDINALITY", *keys])
        behind = (
            f", '$[*]' COLUMNS ({columns})) AS {KEYS} JOIN {self._name} ON {equal}"
            f"{where_sql(self.params)}"
        )
        return f"{before.replace('%', '%%')}%s{behind.replace('%', '%%')}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _asked(connection: "Connection[Any]", query: str, *values: object) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return cursor.fetchall()


def _look(connection: "Connection[Any]", params: MySQLParams, name: str) -> MySQLTable:
    database, _, table = params.table.rpartition(".")
    found = _asked(connection, _COLUMNS, database, table)
    if not found:
        raise SourceUnfit(
            f"there is no table '{params.table}' for source '{name}' in connection "
            f"'{params.connection}'",
            hint="write table_name: <database>.<table>; the user needs SELECT on it",
        )
    kinds = {
        column: Kind(text=kind, charset=charset, collation=collation)
        for column, kind, charset, collation in found
    }
    texts = {column: kind.text for column, kind in kinds.items()}
    columns = columns_of(params, name, texts, lambda text: read_as(Kind(text=text)))
    return MySQLTable(connection, params, kinds, columns)


def _ours(params: MySQLParams, name: str, error: Exception) -> KaflowError:
    _, said = code_and_text(error)
    if is_away(error):
        return away(name, said)
    return unfit(
        name,
        said,
        "correct table_name, where or columns of the source, or what "
        f"mysql.connections.{params.connection} says; its user needs SELECT on the table",
    )
