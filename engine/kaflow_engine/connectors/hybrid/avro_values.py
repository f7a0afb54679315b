"""Records of Avro as the rows of phases are: JSON objects."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.sources.avro_values import json_of_avro
from kaflow_engine.formats.contract import SchemaById
from kaflow_engine.model.columns import Column


def as_json(records: pa.Table, columns: Sequence[Column], schema_by_id: SchemaById) -> pa.Table:
    """Return records with values of JSON; what is no Avro keeps its bytes, and is a dead letter.

    Args:
        records: Of schema RECORDS.
        columns: What is read of them, found by name.
        schema_by_id: Asks the registry.
    """
    values = records.column("value").combine_chunks()
    there = pc.indices_nonzero(values.is_valid())
    found = values.to_pylist()
    texts = json_of_avro(values.take(there), columns, schema_by_id)
    for row, text in zip(there.to_pylist(), texts, strict=True):
        found[row] = text
    place = records.schema.get_field_index("value")
    return records.set_column(place, records.schema.field(place), pa.array(found, pa.binary()))
