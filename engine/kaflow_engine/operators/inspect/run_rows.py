"""Entries of runs: rows that wait for others, and when their runs are due."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.flow.timed import Runs
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.inspect.entry_columns import Decoded, decoded, entry_rows, key_texts
from kaflow_engine.operators.runs.kept_rows import NEVER, read_head, read_row


def decode_waiting(runs: Runs, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode rows of unfinished runs; `key` is their source partition, where that tells writers."""
    found = [read_row(value) for value in values]
    rows = entry_rows(
        _partitions(keys),
        [None] * len(keys),
        [row.ts for row in found],
        [None] * len(keys),
        packed=pa.array([row.payload for row in found], pa.string()),
    )
    return decoded(rows, [("packed", runs.columns)])


def decode_writers(keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode what there is of unfinished runs."""
    found = [read_head(value) for value in values]
    rows = entry_rows(
        _partitions(keys),
        [None] * len(keys),
        [None] * len(keys),
        [None if head.due == NEVER else head.due for head in found],
        waiting=pa.array([head.count for head in found], pa.int64()),
    )
    return decoded(rows, [], [(Column("rows", "BIGINT"), "waiting")])


def _partitions(keys: Sequence[bytes]) -> list[str | None]:
    return [text or None for text in key_texts(keys)]
