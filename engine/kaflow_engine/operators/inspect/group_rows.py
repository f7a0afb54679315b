"""Entries of an aggregate: what is kept of its groups, and their rows."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.windows import WINDOW_START
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.aggregate.entries import over_at, read_entry, read_group
from kaflow_engine.operators.inspect.entry_columns import Decoded, decoded, entry_rows, key_texts

_START = (Column(WINDOW_START, "BIGINT"), "start")


def decode_groups(aggregate: Aggregate, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode groups: their accumulators, and the start of their window in epoch milliseconds."""
    groups = [read_group(value) for value in values]
    starts = [read_entry(aggregate, key)[1] for key in keys]
    due = [over_at(aggregate, g, start) for g, start in zip(groups, starts, strict=True)]
    rows = entry_rows(
        key_texts(keys),
        [None] * len(keys),
        [group.ts for group in groups],
        due,
        start=pa.array(starts, pa.int64()),
        g=pa.array([group.columns or None for group in groups], pa.string()),
    )
    columns = [accumulator.column for accumulator in aggregate.accumulators]
    return decoded(rows, [("g", columns)], [_START] if aggregate.window else [])


def decode_kept(aggregate: Aggregate, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode rows of groups, as they are packed."""
    nothing = [None] * len(keys)
    packed = pa.array([value.decode() for value in values], pa.string())
    rows = entry_rows(key_texts(keys), nothing, nothing, nothing, packed=packed)
    return decoded(rows, [], [(Column("arguments", "VARCHAR"), "packed")])
