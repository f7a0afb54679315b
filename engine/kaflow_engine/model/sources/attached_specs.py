"""Tables of databases that queries look up, and those of files, which are looked up only."""

import re
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator

from kaflow_engine.model.durations import Duration, format_duration
from kaflow_engine.model.names import Filled, refuse
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.spec import Spec

ATTACHED_GUARANTEE = "a batch that runs again has the answers that it had"
ATTACHED_ONLY = ("duckdb", "mysql", "sql", "sqlite")
"""Types of sources that can be looked up, and not be read."""


def _table(text: str, parts: int, such_as: str) -> str:
    found = text.split(".")
    if len(found) > parts or not all(re.fullmatch(r"[^\s\"'%\\]+", part) for part in found):
        raise refuse("{value} is not the name of a table", f"write table_name: {such_as}")
    return text


class ConnectedTableSpec(Spec):
    """A table of a database that a connection of the configuration reaches."""

    type: Any
    connection: Filled = "default"
    """A name under `<type>.connections` of the configuration."""
    needs: ClassVar[str]
    """What a connection says at least, for hints."""
    table_name: str
    """With what it is in, if that is not where the connection looks first; `table` says what its
    rows are to a query."""
    where: Filled | None = None
    """A condition in the SQL of the database: which rows there are; None: all."""

    @property
    def about(self) -> str:
        """Which table."""
        some = "" if self.where is None else f" where {' '.join(self.where.split())}"
        return f"{self.type} table {self.table_name} of connection {self.connection}{some}"


class AttachedSpec(SourceSpec):
    """A table of a database that may be looked up."""

    attached: bool = False
    """It is not read: queries look its rows up, as they are then."""
    refresh: Duration = 0
    """How long a row that was looked up, or its absence, may be used again, in ms."""

    @property
    def asked(self) -> str:
        """When it is looked up, in a few words."""
        again = f"; an answer is good for {format_duration(self.refresh)}" if self.refresh else ""
        return f"as it is when a batch asks for the rows that it joins{again}"


class FileDatabaseSpec(AttachedSpec):
    """A table or a view of a database that is one file."""

    path: Filled
    """Of the file, from the folder of the pipeline file."""
    table_name: str
    """Of the file."""
    where: Filled | None = None
    """A condition in the SQL of the database: which rows are there; None: all."""

    @property
    def about(self) -> str:
        """Which table, and what becomes of its rows."""
        some = "" if self.where is None else f" where {' '.join(self.where.split())}"
        return f"{self.type} table {self.table_name} of {self.path}{some}, {self.asked}"

    @property
    def guarantee(self) -> str | None:
        """What is promised of its rows."""
        return ATTACHED_GUARANTEE


class MySQLSourceSpec(ConnectedTableSpec, AttachedSpec):
    """A table of a MySQL or MariaDB database."""

    type: Literal["mysql"]
    needs: ClassVar[str] = "url: mysql://…"
    table_name: Annotated[
        str, AfterValidator(partial(_table, parts=2, such_as="users, or table_name: crm.users"))
    ]

    @property
    def about(self) -> str:
        """Which table, and what becomes of its rows."""
        return f"{super().about}, {self.asked}"

    @property
    def guarantee(self) -> str | None:
        """What is promised of its rows."""
        return ATTACHED_GUARANTEE


class SQLiteSourceSpec(FileDatabaseSpec):
    """A table of a SQLite file."""

    type: Literal["sqlite"]
    table_name: Annotated[str, AfterValidator(partial(_table, parts=1, such_as="users"))]


class DuckDBSourceSpec(FileDatabaseSpec):
    """A table of a DuckDB file."""

    type: Literal["duckdb"]
    table_name: Annotated[
        str, AfterValidator(partial(_table, parts=2, such_as="users, or table_name: crm.users"))
    ]
    """With its schema, if that is not `main`."""


class SqlSourceSpec(AttachedSpec):
    """A table that statements of DuckDB make, of files and of what they say themselves."""

    type: Literal["sql"]
    sql: Filled
    """CREATE TABLE and INSERT, one or several."""
    table_name: Annotated[str, AfterValidator(partial(_table, parts=1, such_as="users"))]
    """The table that is looked up."""
    files: tuple[Filled, ...] = ()
    """Those that the statements read, as they name them, from the folder of the pipeline file."""

    @property
    def about(self) -> str:
        """Which table, and what becomes of its rows."""
        of = f" of {', '.join(self.files)}" if self.files else ""
        return f"{self.type} table {self.table_name}{of}, made at the start and when a file changes"

    @property
    def guarantee(self) -> str | None:
        """What is promised of its rows."""
        return ATTACHED_GUARANTEE
