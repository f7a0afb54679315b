"""Tables of databases that DuckDB does not read itself: their rows, as a statement needs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from kaflow_engine.connectors.attached.contract import Bound
from kaflow_engine.connectors.attached.table import AttachedTable
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import RunError, SourceUnfit
from kaflow_engine.flow.origins.databases import (
    AttachedParams,
    MySQLParams,
    PostgresParams,
    SQLiteParams,
)
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.model.columns import Column
from kaflow_engine.model.sqlflow.lowering.commands import Attached
from kaflow_engine.serving.reads import Condition, Read

MOST = 1_000_000
"""Rows that a statement may read of a table."""

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


class ReadsTooMuch(RunError):
    """A statement reads more of a table than it may."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table, and the columns that it had when it was looked at."""

    read: Read
    kind: str
    """Of its database."""
    rows: AttachedTable
    columns: tuple[Column, ...] = field(default=())

    @property
    def name(self) -> str:
        """As SQL calls it, in quotes."""
        return ".".join(map(identifier, (self.read.database, *self.read.table.split("."))))

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create it without rows, so that SQL over it can be bound; load what reads rows."""
        format_of("json").decode(pa.array([], pa.binary()), self.columns, no_schema)
        self._schema(connection)
        columns = ", ".join(f"{identifier(each.name)} {each.type}" for each in self.columns)
        connection.execute(f"CREATE TABLE IF NOT EXISTS {self.name} ({columns})")

    def fill(self, connection: duckdb.DuckDBPyConnection, values: Mapping[str, object]) -> None:
        """Create it with the rows that a statement needs.

        Raises:
            SourceError: They cannot be read.
            ReadsTooMuch: There are too many.
        """
        wanted = self._wanted()
        bounds = list(_bounds(self, connection, values))
        found = self.rows.rows(wanted, bounds, MOST + 1)
        if len(found) > MOST:
            raise ReadsTooMuch(f"more than {MOST:,} rows of {self.rows.name} are read")
        texts = pa.array([row.encode() for row in found], pa.binary())
        decoded = format_of("json").decode(texts, wanted, no_schema)
        if decoded.bad:
            raise SourceUnfit(f"a row of {self.rows.name}: {decoded.bad[0].message}")
        self._schema(connection)
        connection.register("_kaflow_rows", decoded.table)
        columns = ", ".join(
            f"CAST({identifier(each.name)} AS {each.type}) AS {identifier(each.name)}"
            for each in wanted
        )
        connection.execute(f"CREATE TABLE {self.name} AS SELECT {columns} FROM _kaflow_rows")
        connection.unregister("_kaflow_rows")

    def _schema(self, connection: duckdb.DuckDBPyConnection) -> None:
        schema, _, _ = self.name.rpartition(".")
        if "." in self.read.table:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")

    def _wanted(self) -> tuple[Column, ...]:
        """Return the columns that the statement may name; one, where it only counts rows."""
        names = self.read.names
        own = {each.name.lower() for each in self.columns}
        if names is None or self.read.wholes - own:
            return self.columns
        found = tuple(each for each in self.columns if each.name.lower() in names)
        return found or self.columns[:1]


def _bounds(
    table: Table, connection: duckdb.DuckDBPyConnection, values: Mapping[str, object]
) -> Sequence[Bound]:
    """Return the conditions that mean the same to the database as to DuckDB."""
    kinds = {each.name.lower(): each for each in table.columns}
    asked = [each for each in table.read.conditions if each.column.lower() in kinds]
    if not asked:
        return ()
    parts = [f"typeof(v{n}), CAST(v{n} AS VARCHAR)" for n in range(len(asked))]
    inner = ", ".join(f"{each.value} AS v{n}" for n, each in enumerate(asked))
    given = {name: values[name] for each in asked for name in each.parameters}
    sql = f"SELECT {', '.join(parts)} FROM (SELECT {inner})"
    row = connection.execute(sql, given).fetchone()
    assert row is not None
    found = zip(asked, row[::2], row[1::2], strict=True)
    return [
        Bound(column.name, condition.operator, text)
        for condition, kind, text in found
        if text is not None
        and _same_there(condition, (column := kinds[condition.column.lower()]).type, kind, table)
    ]


def _same_there(condition: Condition, column: str, value: str, table: Table) -> bool:
    if column in _WHOLE:
        return value in _WHOLE
    if column == "VARCHAR":
        return value == "VARCHAR" and condition.operator == "="
    return table.kind == "postgres" and column in _TIMES and value == column


def table_of(read: Read, database: Attached) -> Table:
    """Return a table without having looked at it."""
    name = f"{read.database}.{read.table}"
    params: AttachedParams
    match database.kind:
        case "postgres":
            params = PostgresParams(
                connection=read.database,
                table=read.table,
                where=None,
                key=(),
                page_size=None,
                columns=(),
                attached=True,
            )
        case "mysql":
            params = MySQLParams(connection=read.database, table=read.table, where=None, columns=())
        case _:
            own = read.table.removeprefix("main.")
            params = SQLiteParams(path=database.where, table=own, where=None, columns=())
    return Table(read, database.kind, AttachedTable(params, {"url": database.where}, name))
