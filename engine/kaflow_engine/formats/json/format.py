"""JSON as a format: one object a value, without schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import SinkError
from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded, Encoded
    from kaflow_engine.formats.schema_registry import Registry


class JsonFormat:
    """Fields are found by name; columns that no one declares are guessed from a sample."""

    traits = Traits(title="JSON", value="JSON object", registered=False, is_json=True)

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return what is declared: fields are found by name."""
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return the columns of the objects in the sample."""
        from kaflow_engine.formats.json.sample import columns_of_sample

        return columns_of_sample(evidence.sample())

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return None: an object needs no schema."""
        return None

    def register(self, registry: "Registry", subject: str, schema: str) -> int:
        """Refuse.

        Raises:
            SinkError: Always.
        """
        raise SinkError(f"subject '{subject}' has no schema to register: JSON has none")

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one object a value."""
        from kaflow_engine.formats.json.decode import decode_json  # it imports pyarrow

        return decode_json(values, columns)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> "JsonEncoder":
        """Return what writes objects with these fields, in their order."""
        return JsonEncoder(tuple(columns))


@dataclass(frozen=True, slots=True)
class JsonEncoder:
    """Writes objects with DuckDB."""

    columns: tuple[Column, ...]

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return the expression of an object."""
        from kaflow_engine.formats.json.encode import json_object_sql

        return json_object_sql([(column, names[column.name]) for column in self.columns])

    def encode(self, rows: "pa.Table") -> "Encoded":
        """Encode rows; there are no bad ones."""
        from kaflow_engine.duck.queries import query
        from kaflow_engine.formats.decoded import Encoded

        value = self.sql({column.name: identifier(column.name) for column in self.columns})
        found = query(f"SELECT encode({value}) AS value FROM rows", rows)
        return Encoded(found.column("value").combine_chunks(), ())
