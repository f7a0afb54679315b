"""Outputs in systems that the configuration knows, and tables among them."""

import json
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled
from kaflow_engine.model.outputs.output_specs import SinkSpec
from kaflow_engine.model.outputs.sink_names import (
    clickhouse_table,
    iceberg_table,
    postgres_table,
)

Comparison = Literal["<", "<=", "=", "<>", "!=", ">=", ">"]


class ConnectedSinkSpec(SinkSpec):
    """A sink in a system that the configuration knows."""

    connection: Filled = "default"
    """A name under `<kind>.connections` of the configuration."""
    needs: ClassVar[str]
    """What a connection says at least, for hints."""

    @property
    def is_reached(self) -> bool:
        """Whether no connection is needed."""
        return False


class ConnectedTableSpec(ConnectedSinkSpec):
    """A table of a database, whose rows may replace each other."""

    table: str
    """With what it is in, if that is not where the connection looks first."""
    mode: Literal["append", "upsert"] | None = None
    """Whether each row is one more, or replaces the one of its key; None: as the rows are."""
    create: bool = False
    """The table is created unless it is there."""

    @property
    def called(self) -> str:
        """The table, behind the name of its database."""
        return f"{self.connection}.{self.table}"

    @property
    def is_shared(self) -> bool:
        """Others read the table."""
        return True

    @property
    def replaces(self) -> bool:
        """Whether rows replace each other though none of them goes."""
        return self.mode == "upsert"

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        return {"connection": self.connection, "table": self.table, "create": self.create}


class PostgresSpec(ConnectedTableSpec):
    """A table of a PostgreSQL database."""

    type: Literal["postgres"]
    needs: ClassVar[str] = "url: postgresql://…"
    table: Annotated[str, AfterValidator(postgres_table)]
    on_conflict: Literal["update", "nothing"] = "update"
    """What becomes of a row whose key is there: it takes its place, or is left out."""
    update_where: dict[Filled, Comparison] = Field(default={})
    """A row takes the place of another one only where each of these columns compares so with it."""
    adds: dict[Filled, Literal["sum", "min", "max"]] = Field(default={})
    """How what the table has for a key before the pipeline first writes to it stays a part of these
    columns."""
    batch_column: Filled | None = None
    """A column with the number of the batch of each row; only those of the last two stay."""

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        said = {
            "on_conflict": None if self.on_conflict == "update" else self.on_conflict,
            "update_where": json.dumps(dict(sorted(self.update_where.items())))
            if self.update_where
            else None,
            "adds": json.dumps(dict(sorted(self.adds.items()))) if self.adds else None,
            "batch_column": self.batch_column,
        }
        return {**super().settings, **{key: text for key, text in said.items() if text}}


class ClickHouseSpec(ConnectedTableSpec):
    """A table of a ClickHouse server."""

    type: Literal["clickhouse"]
    needs: ClassVar[str] = "url: https://…"
    table: Annotated[str, AfterValidator(clickhouse_table)]
    version_column: Filled | None = None
    """The column with the version of a row, where rows replace each other; None: `_version`."""
    deleted_column: Filled | None = None
    """The column that says whether a row is gone; None: `_deleted`."""

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        own = {"version_column": self.version_column, "deleted_column": self.deleted_column}
        return {**super().settings, **{key: text for key, text in own.items() if text}}


class IcebergSpec(ConnectedTableSpec):
    """An Iceberg table."""

    type: Literal["iceberg"]
    needs: ClassVar[str] = "uri: …, warehouse: …"
    table: Annotated[str, AfterValidator(iceberg_table)]
    interval: Duration = 10_000
    """How long rows are gathered, in ms, before they are committed."""

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps."""
        return {**super().settings, "interval": self.interval}
