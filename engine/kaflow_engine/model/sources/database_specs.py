"""Sources that are tables of databases: read once, in pages by a key."""

from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from kaflow_engine.model.names import Filled, refuse
from kaflow_engine.model.outputs.sink_names import clickhouse_table, postgres_table
from kaflow_engine.model.sources.attached_specs import (
    ATTACHED_GUARANTEE,
    AttachedSpec,
    ConnectedTableSpec,
)
from kaflow_engine.model.sources.source_spec import SourceSpec

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


class DatabaseTableSpec(ConnectedTableSpec):
    """A table of a database, which is read once, from its first row to its last one."""

    page_size: Annotated[int | None, BeforeValidator(_page)] = Field(default=None)
    """How many rows are read at once; None: as many as take a moment."""

    @property
    def pages_by(self) -> str | None:
        """What its pages are cut by, in a few words."""
        raise NotImplementedError

    @property
    def guarantee(self) -> str | None:
        """What is promised of its rows."""
        return (
            "each row exactly once, as it was when its page was read; ends with the last row of "
            "the table"
        )

    @property
    def ends(self) -> bool:
        """With its last row."""
        return True

    @property
    def record_time(self) -> str:
        """All records of a page have one."""
        return "time when the page of the row was read"


class PostgresTableSpec(DatabaseTableSpec):
    """A table of a PostgreSQL database."""

    type: Literal["postgres"]
    needs: ClassVar[str] = "url: postgresql://…"
    table_name: Annotated[str, AfterValidator(partial(postgres_table, key=_KEY))]
    """`<table>` or `<schema>.<table>`; `table` says what its rows are to a query."""
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
    """`<table>` or `<database>.<table>`; `table` says what its rows are to a query."""
    start_at: Filled | None = None
    """The least value of the first part of the sorting key that is read; None: all are."""

    @property
    def pages_by(self) -> str | None:
        """Its key."""
        return f"the sorting key{f' from {self.start_at}' if self.start_at else ''}"


class PostgresSourceSpec(PostgresTableSpec, AttachedSpec):
    """A table of a PostgreSQL database as a source."""

    @property
    def about(self) -> str:
        """Which table, and what becomes of its rows."""
        return f"{super().about}, {self.asked}" if self.attached else super().about

    @property
    def guarantee(self) -> str | None:
        """What is promised of its rows."""
        return ATTACHED_GUARANTEE if self.attached else super().guarantee


class ClickHouseSourceSpec(ClickHouseTableSpec, SourceSpec):
    """A table of a ClickHouse server as a source."""
