"""JSON as a format: one object a value, without schemas."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits, WithoutSchemas
from kaflow_engine.formats.encoders import SqlEncoder
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded


class JsonFormat(WithoutSchemas):
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

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one object a value."""
        from kaflow_engine.formats.json.decode import decode_json  # it imports pyarrow

        return decode_json(values, columns)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> SqlEncoder:
        """Return what writes objects with these fields, in their order."""
        from kaflow_engine.formats.json.encode import json_object_sql

        return SqlEncoder(tuple(columns), json_object_sql)


class SpacedJsonFormat(JsonFormat):
    """JSON with a space behind each comma and colon, as many programs print it."""

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> SqlEncoder:
        """Return what writes objects with these fields, in their order."""
        from kaflow_engine.formats.json.encode import spaced_object_sql

        return SqlEncoder(tuple(columns), spaced_object_sql)
