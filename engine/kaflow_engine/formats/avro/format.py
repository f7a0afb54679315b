"""Avro as a format: records with Confluent framing, schemas in the registry."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits
from kaflow_engine.formats.encoders import SchemaEncoder
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.avro.encode import AvroEncoder
    from kaflow_engine.formats.decoded import Decoded
    from kaflow_engine.formats.schema_registry import Registry


class AvroFormat:
    """Columns are the fields of the writer's schema, found by name."""

    traits = Traits(
        title="Avro",
        value="Avro record",
        registered=True,
        language="AVRO",
        is_json=False,
    )

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return what is declared: fields are found by name."""
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return the fields of the registered schema."""
        from kaflow_engine.formats.avro.schema import columns_of  # it imports pyarrow

        schema = evidence.schema()
        return None if schema is None else columns_of(schema)

    def nullable(self, schema: str) -> frozenset[str]:
        """Return the fields that are unions with null, and those inside of them."""
        from kaflow_engine.formats.avro.nullability import nullable_fields

        return nullable_fields(schema)

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return the schema of a record with these fields."""
        from kaflow_engine.formats.avro.schema import avro_schema

        return avro_schema(columns, name)

    def register(self, registry: "Registry", subject: str, schema: str) -> int:
        """Register a record's schema."""
        return registry.register(subject, schema, "AVRO")

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one framed record a value."""
        from kaflow_engine.formats.avro.decode import decode_avro

        return decode_avro(values, columns, schema_by_id)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> SchemaEncoder:
        """Return what writes framed records of a schema."""
        assert schema is not None
        return SchemaEncoder(tuple(column.name for column in columns), schema, _encoder)


@lru_cache(maxsize=64)
def _encoder(schema: IdSchema) -> "AvroEncoder":
    from kaflow_engine.formats.avro.encode import AvroEncoder

    return AvroEncoder(schema.text, schema.id)
