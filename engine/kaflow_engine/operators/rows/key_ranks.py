"""Keys as numbers that stand in their order: for rows whose time is up, in all tasks alike."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.row_text import columns_of, unpack
from kaflow_engine.operators.rows.schemas import MEMBERS
from kaflow_engine.state.binary_columns import ordered_words


def key_ranks(columns: Sequence[Column], keys: pa.BinaryArray) -> pa.ListArray:
    """Return lists of numbers that stand in the order in which DuckDB sorts keys, NULL last.

    The order holds over tasks, which do not know the keys of each other.

    Args:
        columns: Of a key.
        keys: Packed, behind their shard byte.
    """
    if not columns:
        nothing: list[list[int]] = [[]] * len(keys)
        return pa.array(nothing, MEMBERS)
    names = [identifier(column.name) for column in columns]
    sorts = ", ".join(f"{name}, 'ASC NULLS LAST'" for name in names)
    typed = ", ".join(columns_of("l", columns))
    texts = pc.binary_slice(keys, 1, 1 << 31).cast(pa.string())
    found = query(
        f"SELECT create_sort_key({sorts}) AS mark "
        f"FROM (SELECT {typed} FROM (SELECT {unpack('key')} AS l FROM rows))",
        rows=pa.table({"key": texts}),
    )
    marks = found["mark"].combine_chunks()
    if pa.types.is_integer(marks.type):  # that of a short key is a number
        places = pa.array(np.arange(len(marks) + 1), pa.int32())
        return pa.ListArray.from_arrays(places, marks.cast(pa.int64()))
    return ordered_words(marks)
