"""Decode JSON objects with Confluent framing into columns.

The schema's id must be one of the registry. What a field may hold is said by the type of its
column, which comes from the newest schema or from the file: a value that does not fit is bad, as in
JSON. Rules that are no types, such as `minimum` or `pattern`, are for producers.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.decoded import BadValue, Decoded
from kaflow_engine.formats.framing import HEADER, framed
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.pick import pick
from kaflow_engine.model.columns import Column

_ALL = 1 << 31


def decode_framed_json(
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[Column],
    schema_by_id: Callable[[int], str],
) -> Decoded:
    """Decode `values` (binary, none null) into `columns`.

    `schema_by_id` raises UnknownSchema for an id that does not exist: its values are bad.
    """
    batch = framed(values)
    bad = list(batch.bad)
    known = [rows for _, _, rows in batch.with_schemas(schema_by_id, bad)]
    rows = pa.array(np.sort(np.concatenate([np.empty(0, np.int64), *known])), pa.int64())
    found = decode_json(pc.binary_slice(pick(batch.values, rows), HEADER, _ALL), columns)
    bad += [BadValue(rows[b.row].as_py(), b.error, b.message) for b in found.bad]
    bad.sort(key=lambda one: one.row)
    return Decoded(found.table, rows.take(found.good), tuple(bad))
