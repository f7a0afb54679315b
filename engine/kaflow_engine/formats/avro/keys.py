"""Keys in Avro: records where they have fields, else one value, whose schema is its type."""

import json
from typing import TYPE_CHECKING

from kaflow_engine.formats.contract import IdSchema, SchemaById, format_of
from kaflow_engine.formats.types import fields_of
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded, Encoded

_ALONE = "key"
"""What one value is called in the record that has the same bytes."""


def key_columns(kind: str) -> tuple[Column, ...]:
    """Return the columns of the record that a key of a DuckDB type is, or has the bytes of."""
    return tuple(fields_of(kind)) or (Column(_ALONE, kind),)


def key_schema(kind: str, name: str) -> str:
    """Return the schema of keys of a DuckDB type.

    Raises:
        ModelError: A field has a name or a type that Avro does not have.
    """
    from kaflow_engine.formats.avro.schema import avro_schema  # it imports pyarrow

    schema = avro_schema(key_columns(kind), name)
    if fields_of(kind):
        return schema
    _null, alone = json.loads(schema)["fields"][0]["type"]
    return json.dumps(alone)


def as_record(schema: str) -> str:
    """Return the schema of records that have the same bytes as what a schema describes.

    >>> as_record('"long"')
    '{"type": "record", "name": "Key", "fields": [{"name": "key", "type": "long"}]}'
    """
    found: object = json.loads(schema)
    if isinstance(found, dict) and "fields" in found:
        return schema
    field: dict[str, object] = {"name": _ALONE, "type": found}
    return json.dumps({"type": "record", "name": "Key", "fields": [field]})


def encode_keys(keys: "pa.Array", kind: str, schema: IdSchema) -> "Encoded":
    """Return keys as bytes, each behind the id of the schema.

    Args:
        keys: Values of the type, none null.
        kind: That DuckDB type.
        schema: As `key_schema` has it.
    """
    import pyarrow as pa

    names = [column.name for column in key_columns(kind)]
    written = IdSchema(schema.id, as_record(schema.text))
    encoder = format_of("avro").encoder(key_columns(kind), written)
    if isinstance(keys, pa.StructArray):
        return encoder.encode(pa.table(keys.flatten(), names=names))
    return encoder.encode(pa.table([keys], names=names))


def decode_keys(
    keys: "pa.Array", kind: str, schema_by_id: SchemaById
) -> "tuple[pa.Array, Decoded]":
    """Return the keys that can be read, as values of a DuckDB type, and which these are.

    Args:
        keys: Bytes, none null.
        kind: The type of a key.
        schema_by_id: Writer schemas.
    """
    import pyarrow as pa

    found = format_of("avro").decode(
        keys, key_columns(kind), lambda number: as_record(schema_by_id(number))
    )
    columns = [column.combine_chunks() for column in found.table.columns]
    if not fields_of(kind):
        return columns[0], found
    return pa.StructArray.from_arrays(columns, fields=list(found.table.schema)), found
