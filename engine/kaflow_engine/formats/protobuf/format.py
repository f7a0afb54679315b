"""Protobuf as a format: messages with Confluent framing, schemas in the registry."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from kaflow_engine.errors import SinkError
from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits
from kaflow_engine.formats.encoders import SchemaEncoder
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded
    from kaflow_engine.formats.protobuf.encode import ProtobufEncoder
    from kaflow_engine.formats.schema_registry import Registry


class ProtobufFormat:
    """Columns are the fields of the schema's first message, found by name."""

    traits = Traits(
        title="Protobuf",
        value="Protobuf message",
        registered=True,
        language="PROTOBUF",
        is_json=False,
    )

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return what is declared: fields are found by name."""
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return the fields of the registered schema's first message."""
        from kaflow_engine.formats.protobuf.read import columns_of  # it imports Protobuf's library

        schema = evidence.schema()
        return None if schema is None else columns_of(schema)

    def nullable(self, schema: str) -> frozenset[str]:
        """Return the fields that may not be written and have no other value then."""
        from kaflow_engine.formats.protobuf.nullability import nullable_fields

        return nullable_fields(schema)

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return the schema of a message with these fields."""
        from kaflow_engine.formats.protobuf.write import protobuf_schema

        return protobuf_schema(columns, name)

    def register(self, registry: "Registry", subject: str, schema: str) -> int:
        """Register a message's schema, if no number of the newest one would change its meaning.

        Raises:
            SinkError: One would, or the registry refuses the schema.
        """
        from kaflow_engine.formats.protobuf.numbers import moved_field

        newest = registry.latest(subject)
        moved = moved_field(newest.schema, schema) if newest else None
        if moved is not None:
            raise SinkError(
                f"the schema of '{subject}' has field {moved.number} as '{moved.before}', and it "
                f"would become '{moved.after}'",
                hint="fields are numbered in the order of the columns: keep the order, and add new "
                "columns at the end",
            )
        return registry.register(subject, schema, "PROTOBUF")

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one framed message a value."""
        from kaflow_engine.formats.protobuf.decode import decode_protobuf

        return decode_protobuf(values, columns, schema_by_id)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> SchemaEncoder:
        """Return what writes framed messages of a schema."""
        assert schema is not None
        return SchemaEncoder(tuple(column.name for column in columns), schema, _encoder)


@lru_cache(maxsize=64)
def _encoder(schema: IdSchema) -> "ProtobufEncoder":
    from kaflow_engine.formats.protobuf.encode import ProtobufEncoder

    return ProtobufEncoder(schema.text, schema.id)
