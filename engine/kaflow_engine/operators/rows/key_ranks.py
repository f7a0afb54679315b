"""Keys as numbers that stand in their order: for rows whose time is up, in all tasks alike."""

from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.row_text import columns_of, unpack

_WORD = 8
_BIAS = 1 << 63


def key_ranks(columns: Sequence[Column], keys: Sequence[bytes]) -> list[list[int]]:
    """Return numbers of keys that stand in the order in which DuckDB sorts them, NULL last.

    The order holds over tasks, which do not know the keys of each other.

    Args:
        columns: Of a key.
        keys: Packed, behind their shard byte.
    """
    if not columns:
        return [[] for _ in keys]
    names = [identifier(column.name) for column in columns]
    sorts = ", ".join(f"{name}, 'ASC NULLS LAST'" for name in names)
    typed = ", ".join(columns_of("l", columns))
    texts = pa.array([key[1:].decode() for key in keys], pa.string())
    found = query(
        f"SELECT create_sort_key({sorts}) AS mark "
        f"FROM (SELECT {typed} FROM (SELECT {unpack('key')} AS l FROM rows))",
        rows=pa.table({"key": texts}),
    )
    return [_words(mark) for mark in found["mark"].to_pylist()]


def _words(mark: bytes | int) -> list[int]:
    """Return a sort key as numbers that stand in the same order; a short one is a number."""
    if isinstance(mark, int):
        return [mark]
    whole = mark.ljust(-(-len(mark) // _WORD) * _WORD, b"\0")
    places = range(0, len(whole), _WORD)
    return [int.from_bytes(whole[i : i + _WORD], "big") - _BIAS for i in places]
