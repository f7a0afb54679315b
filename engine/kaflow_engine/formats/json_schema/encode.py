"""Encode rows as JSON objects with Confluent framing."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.decoded import Encoded
from kaflow_engine.formats.framing import header
from kaflow_engine.formats.json.encode import json_object_sql
from kaflow_engine.model.columns import Column


def encode_framed_json(rows: pa.Table, columns: Sequence[Column], schema_id: int) -> Encoded:
    """Encode every row as an object with these fields, in their order."""
    value = json_object_sql([(column, identifier(column.name)) for column in columns])
    before = "".join(f"\\x{byte:02x}" for byte in header(schema_id))
    found = query(f"SELECT '{before}'::BLOB || encode({value}) AS value FROM rows", rows)
    return Encoded(found.column("value").combine_chunks(), ())
