"""Tables of databases that are read once, or looked up, as a plan keeps them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from kaflow_engine.model.columns import Column

_OF_SQLITE = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    *("FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN", "VARCHAR"),
)
"""Types whose values SQLite stores in one form: a time or a UUID is a text of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfConnection:
    """A table that is reached by a connection of the configuration."""

    type: str
    connection: str
    table: str
    where: str | None
    columns: tuple[Column, ...]
    """Those that are read, as they are declared; none: all, with the types of the table."""

    @property
    def place(self) -> str:
        """Which table, in a few words."""
        return f"{self.type} table {self.table} of connection {self.connection}"

    @property
    def reached_by(self) -> tuple[str, str] | None:
        """Kind and name of the connection of the configuration that it needs; None: of none."""
        return self.type, self.connection


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfFile:
    """A table of a file."""

    type: str
    path: str
    """From the root."""
    table: str
    where: str | None
    columns: tuple[Column, ...]

    @property
    def place(self) -> str:
        """Which table, in a few words."""
        return f"{self.type} table {self.table} of {self.path}"

    @property
    def reached_by(self) -> tuple[str, str] | None:
        """None: what it says is all that is needed."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresParams(_OfConnection):
    """A table of a PostgreSQL database."""

    type: Literal["postgres"] = "postgres"
    finds_by: ClassVar[tuple[str, ...]] = ()
    """Types of columns, without digits, by which rows can be looked up; none: all of scalars."""
    has_records: ClassVar[bool] = True
    """It can be read as records, too."""
    key: tuple[str, ...]
    """Columns of a unique index; none: the primary key."""
    page_size: int | None
    """Rows; None: as many as take a moment."""
    attached: bool = False
    """It is looked up instead of read: it may be a view, and needs no key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickHouseParams(_OfConnection):
    """A table of a ClickHouse server, read by its sorting key."""

    type: Literal["clickhouse"] = "clickhouse"
    page_size: int | None
    start_at: str | None = None
    """The least value of the first part of the sorting key that is read; None: all are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SQLiteParams(_OfFile):
    """A table of a SQLite file, which is looked up."""

    type: Literal["sqlite"] = "sqlite"
    finds_by: ClassVar[tuple[str, ...]] = _OF_SQLITE
    has_records: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBParams(_OfFile):
    """A table of a DuckDB file, which is looked up."""

    type: Literal["duckdb"] = "duckdb"
    finds_by: ClassVar[tuple[str, ...]] = ()
    has_records: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MySQLParams(_OfConnection):
    """A table of a MySQL or MariaDB database, which is looked up."""

    type: Literal["mysql"] = "mysql"
    finds_by: ClassVar[tuple[str, ...]] = ()
    has_records: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlParams:
    """A table that statements make, which is looked up; with the properties of those of files."""

    type: Literal["sql"] = "sql"
    finds_by: ClassVar[tuple[str, ...]] = ()
    has_records: ClassVar[bool] = False
    sql: str
    """Statements of DuckDB, which name files from the root."""
    files: tuple[str, ...]
    """All that may be read, from the root."""
    table: str
    columns: tuple[Column, ...]
    where: ClassVar[str | None] = None

    @property
    def place(self) -> str:
        """Which table, in a few words."""
        of = f" of {', '.join(self.files)}" if self.files else ""
        return f"{self.type} table {self.table}{of}"

    @property
    def reached_by(self) -> tuple[str, str] | None:
        """None: what it says is all that is needed."""
        return None


DatabaseParams = PostgresParams | ClickHouseParams
"""The settings of a table that is read once."""
AttachedParams = PostgresParams | MySQLParams | SQLiteParams | DuckDBParams | SqlParams
"""The settings of a table that is looked up: a closed union, by `type`."""
