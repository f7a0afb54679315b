"""Tables of databases that are read once, or looked up, as a plan keeps them."""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.model.columns import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresParams:
    """A table of a PostgreSQL database."""

    type: Literal["postgres"] = "postgres"
    connection: str
    table: str
    where: str | None
    key: tuple[str, ...]
    """Columns of a unique index; none: the primary key."""
    page_size: int | None
    """Rows; None: as many as take a moment."""
    columns: tuple[Column, ...]
    """Those that are read, as they are declared; none: all, with the types of the table."""
    attached: bool = False
    """It is looked up instead of read: it may be a view, and needs no key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickHouseParams:
    """A table of a ClickHouse server, read by its sorting key."""

    type: Literal["clickhouse"] = "clickhouse"
    connection: str
    table: str
    where: str | None
    page_size: int | None
    columns: tuple[Column, ...]


DatabaseParams = PostgresParams | ClickHouseParams
"""The settings of a table that is read once."""
