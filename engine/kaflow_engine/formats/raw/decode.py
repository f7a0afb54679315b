"""Raw values to one column."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kaflow_engine.formats.decoded import Decoded, schema_of
from kaflow_engine.formats.text import texts_of
from kaflow_engine.model.columns import Column


def decode_raw(values: pa.Array | pa.ChunkedArray, columns: Sequence[Column]) -> Decoded:
    """Decode `values` (binary, none null) into the one column, or into none; text is UTF-8."""
    schema = schema_of(columns)
    if any(pa.types.is_string(field.type) for field in schema):
        texts, bad = texts_of(values)
        return Decoded(_table(texts.values, schema), texts.rows, tuple(bad))
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    good = pa.array(np.arange(len(array)), pa.int64())
    return Decoded(_table(array.cast(pa.binary()), schema), good, ())


def _table(array: pa.Array, schema: pa.Schema) -> pa.Table:
    # the second column keeps the number of rows where the first is not asked for
    both = pa.table([array, array], ["", "value"])
    return both.select([1] if len(schema) else []).rename_columns(schema.names)
