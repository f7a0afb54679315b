"""JSON with a schema as a format: objects with Confluent framing, schemas in the registry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded, Encoded
    from kaflow_engine.formats.schema_registry import Registry


class JsonSchemaFormat:
    """Columns are the properties of the registered schema, found by name."""

    traits = Traits(
        title="JSON Schema",
        value="JSON object with a schema",
        registered=True,
        language="JSON",
        is_json=False,
    )

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return what is declared: fields are found by name."""
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return the properties of the registered schema."""
        from kaflow_engine.formats.json_schema.read import columns_of

        schema = evidence.schema()
        return None if schema is None else columns_of(schema)

    def nullable(self, schema: str) -> frozenset[str]:
        """Return the properties that are not required, or may be null."""
        from kaflow_engine.formats.json_schema.read import nullable_properties

        return nullable_properties(schema)

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return the schema of an object with these properties."""
        from kaflow_engine.formats.json_schema.write import json_schema

        return json_schema(columns, name)

    def register(self, registry: "Registry", subject: str, schema: str) -> int:
        """Register the schema of an object."""
        return registry.register(subject, schema, "JSON")

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one framed object a value."""
        from kaflow_engine.formats.json_schema.decode import decode_framed_json

        return decode_framed_json(values, columns, schema_by_id)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> "FramedObjects":
        """Return what writes framed objects of a schema."""
        assert schema is not None
        return FramedObjects(tuple(columns), schema.id)


@dataclass(frozen=True, slots=True)
class FramedObjects:
    """Writes objects behind the id of their schema."""

    columns: tuple[Column, ...]
    schema_id: int

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return None: the bytes of an id are no text."""
        return None

    def encode(self, rows: "pa.Table") -> "Encoded":
        """Encode rows; there are no bad ones."""
        from kaflow_engine.formats.json_schema.encode import encode_framed_json

        return encode_framed_json(rows, self.columns, self.schema_id)
