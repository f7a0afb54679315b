"""Encoders that formats share: values that DuckDB writes, and values behind the id of a schema."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.contract import IdSchema
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Encoded

ValueSql = Callable[[Sequence[tuple[Column, str]]], str]
"""Takes columns with the SQL of each, and returns that of the value, VARCHAR."""


@dataclass(frozen=True, slots=True)
class SqlEncoder:
    """Writes values with DuckDB."""

    columns: tuple[Column, ...]
    value: ValueSql

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return the expression of a value."""
        return self.value([(column, names[column.name]) for column in self.columns])

    def encode(self, rows: "pa.Table") -> "Encoded":
        """Encode rows; there are no bad ones."""
        from kaflow_engine.duck.queries import query
        from kaflow_engine.formats.decoded import Encoded

        value = self.sql({column.name: identifier(column.name) for column in self.columns})
        found = query(f"SELECT encode({value}) AS value FROM rows", rows)
        return Encoded(found.column("value").combine_chunks(), ())


class EncodesRows(Protocol):
    """Writes rows with the columns of one schema."""

    def encode(self, rows: "pa.Table", /) -> "Encoded":
        """Encode rows; one that the schema cannot hold is bad."""
        ...


@dataclass(frozen=True, slots=True)
class SchemaEncoder:
    """Writes values behind the id of their schema."""

    names: tuple[str, ...]
    schema: IdSchema
    encoder_of: Callable[[IdSchema], EncodesRows]
    """Reads the schema; it is asked for each table of rows, and keeps what it has read."""

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return None: the bytes of an id are no text."""
        return None

    def encode(self, rows: "pa.Table") -> "Encoded":
        """Encode rows; one that the schema cannot hold is bad."""
        return self.encoder_of(self.schema).encode(rows.select(list(self.names)))
