"""Sources that are tables of databases: read once, in pages by a key."""

from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from kaflow_engine.model.durations import Duration, format_duration
from kaflow_engine.model.names import Filled, refuse
from kaflow_engine.model.outputs.sink_names import clickhouse_table, postgres_table
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.spec import Spec

_KEY = "table_name"
SMALLEST, LARGEST = 100, 1_000_000
"""Rows of a page that an author sets."""


def _page(value: object) -> object:
    if value is None or value == "auto":
        return None
    text = str(value)
    if text.isdecimal() and SMALLEST <= int(text) <= LARGEST:
        return int(text)
    raise refuse(
        "is not a number of rows for a page",
        f"write auto, or a number from {SMALLEST} to {LARGEST}",
    )


def _several(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise refuse(f"names '{name}' twice", "name each column of the key once")
    return names


class DatabaseTableSpec(Spec):
    """A table of a database, which is read once, from its first row to its last one."""

    type: Any
    connection: Filled = "default"
    """A name under `<type>.connections` of the configuration."""
    needs: ClassVar[str]
    """What a connection says at least, for hints."""
    table_name: str
    """With what it is in, if that is not where the connection looks first; `table` says what its
    rows are to a query."""
    where: Filled | None = None
    """A condition in the SQL of the database: which rows are read; None: all."""
    page_size: Annotated[int | None, BeforeValidator(_page)] = Field(default=None)
    """How many rows are read at once; None: as many as take a moment."""

    @property
    def pages_by(self) -> str | None:
        """What its pages are cut by, in a few words."""
        raise NotImplementedError

    @property
    def about(self) -> str:
        """Which table."""
        some = "" if self.where is None else f" where {' '.join(self.where.split())}"
        return f"{self.type} table {self.table_name} of connection {self.connection}{some}"

    @property
    def guarantee(self) -> str | None:
        """What is promised of its rows."""
        return (
            "each row exactly once, as it was when its page was read; ends with the last row of "
            "the table"
        )

    @property
    def record_time(self) -> str:
        """All records of a page have one."""
        return "time when the page of the row was read"


class PostgresTableSpec(DatabaseTableSpec):
    """A table of a PostgreSQL database."""

    type: Literal["postgres"]
    needs: ClassVar[str] = "url: postgresql://…"
    table_name: Annotated[str, AfterValidator(partial(postgres_table, key=_KEY))]
    page_key: Annotated[tuple[Filled, ...], AfterValidator(_several)] = ()
    """Columns of a unique index without NULLs; none: the primary key."""

    @property
    def pages_by(self) -> str | None:
        """Its key."""
        return ", ".join(self.page_key) if self.page_key else "the primary key"


class ClickHouseTableSpec(DatabaseTableSpec):
    """A table of a ClickHouse server."""

    type: Literal["clickhouse"]
    needs: ClassVar[str] = "url: https://…"
    table_name: Annotated[str, AfterValidator(partial(clickhouse_table, key=_KEY))]

    @property
    def pages_by(self) -> str | None:
        """Its key."""
        return "the sorting key"


class PostgresSourceSpec(PostgresTableSpec, SourceSpec):
    """A table of a PostgreSQL database as a source."""

    attached: bool = False
    """It is not read: queries look its rows up, as they are then."""
    refresh: Duration = 0
    """How long a row that was looked up, or its absence, may be used again, in ms."""

    @property
    def about(self) -> str:
        """Which table, and what becomes of its rows."""
        if not self.attached:
            return super().about
        again = f"; an answer is good for {format_duration(self.refresh)}" if self.refresh else ""
        return f"{super().about}, as it is when a batch asks for the rows that it joins{again}"

    @property
    def guarantee(self) -> str | None:
        """What is promised of its rows."""
        if self.attached:
            return "a batch that runs again has the answers that it had"
        return super().guarantee


class ClickHouseSourceSpec(ClickHouseTableSpec, SourceSpec):
    """A table of a ClickHouse server as a source."""
