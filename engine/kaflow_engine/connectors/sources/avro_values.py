"""Framed records of Avro as JSON objects."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.formats.avro.format import AvroFormat
from kaflow_engine.formats.contract import SchemaById
from kaflow_engine.formats.json.format import JsonFormat
from kaflow_engine.model.columns import Column


def json_of_avro(
    values: pa.Array, columns: Sequence[Column], schema_by_id: SchemaById
) -> list[bytes]:
    """Return each value as a JSON object; what is no Avro, or has no JSON, keeps its bytes.

    Args:
        values: binary, none null.
        columns: The members of objects, found by name.
        schema_by_id: Returns a schema.
    """
    decoded = AvroFormat().decode(values, columns, schema_by_id)
    encoded = JsonFormat().encoder(columns, None).encode(decoded.table)
    found: list[bytes] = values.to_pylist()
    for row, text in zip(decoded.good.to_pylist(), encoded.values, strict=True):
        found[row] = found[row] if text is None else text
    return found
