"""Entries of a throttle: keys that sent a change, and changes that are held."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.model.columns import Column
from kaflow_engine.operators.inspect.entry_columns import Decoded, decoded, entry_rows, key_texts
from kaflow_engine.operators.throttle.sent_keys import read_sent


def decode_sent(keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode keys of an output: what they sent last, and what is held until `due`."""
    found = [read_sent(value) for value in values]
    rows = entry_rows(
        key_texts(keys),
        [None] * len(keys),
        [key.held.ts if key.held else None for key in found],
        [key.until for key in found],
        sent=pa.array([key.value for key in found], pa.binary()),
        holds=pa.array([key.held is not None for key in found], pa.bool_()),
        held=pa.array([key.held.value if key.held else None for key in found], pa.binary()),
    )
    columns = [("sent", "BLOB"), ("holds", "BOOLEAN"), ("held", "BLOB")]
    return decoded(rows, [], [(Column(name, kind), name) for name, kind in columns])
