"""The columns that every record has besides its value, for the queries that use them."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.formats.contract import SchemaById
from kaflow_engine.formats.pick import pick
from kaflow_engine.model.record_columns import HEADERS, KEY, KEY_BYTES, NULL_VALUE
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.source.keys import read_keys

_LAST_OF_A_NAME = (
    'list_filter("headers", lambda h, i: NOT list_contains('
    'list_transform("headers"[i + 1:], lambda later: later."key"), h."key"))'
)
_SQL: Mapping[str, tuple[str, str]] = {
    "_time": ("$ts", 'make_timestamp("$ts" * 1000)'),
    "_topic": ("topic", '"topic"'),
    "_partition": ("partition", '"partition"'),
    "_offset": ("offset", '"offset"'),
    "_timestamp": ("timestamp", 'make_timestamp("timestamp" * 1000)'),
    HEADERS: ("headers", f"coalesce(map_from_entries({_LAST_OF_A_NAME}), MAP {{}})"),
}
"""Of each what it is made of, a column of the records or `$ts`, and how."""


def with_record_columns(
    topic: TopicParams, rows: pa.Table, records: pa.Table, schema_by_id: SchemaById
) -> tuple[pa.Table, list[BadRecord]]:
    """Add those record columns that the plan uses, and take out rows without a value for them.

    Args:
        topic: Whose records they are.
        rows: Good records: rn and `$ts`, in epoch milliseconds, among others.
        records: Schema RECORDS; row i has `rn` i.
        schema_by_id: Writer schemas of keys, where they are registered.

    Returns:
        The rows with `c.<record column>`, and why others were taken out.
    """
    if not topic.record_columns:
        return rows, []
    names = [column.name for column in topic.record_columns]
    known: dict[str, pa.ChunkedArray] = {}
    if NULL_VALUE.name in names:
        known[NULL_VALUE.name] = pick(records["value"], rows["rn"]).is_null()
    if HEADERS in names and (maps := headers_as_maps(pick(records["headers"], rows["rn"]))):
        known[HEADERS] = maps
    asked = [(name, *_SQL[name]) for name in names if name in _SQL and name not in known]
    raw = {"rn": rows["rn"], "$ts": rows["$ts"]}
    rows = _with(rows, known)
    raw |= {of: pick(records[of], rows["rn"]) for _, of, _ in asked if of != "$ts"}
    chosen = ", ".join(["rn", *(f"{sql} AS {identifier(f'c.{n}')}" for n, _, sql in asked)])
    given = pa.table(raw)
    only = given.select(["rn"])
    found, failed = guarded(f"SELECT {chosen} FROM rows", given) if asked else (only, [])
    bad = [BadRecord(row=b.row, phase="decode", error=b.error, message=b.message) for b in failed]
    rows = _without(rows, [b.row for b in failed])
    if KEY_BYTES.name in names:
        came = pick(records["key"], rows["rn"])
        found = found.append_column(f"c.{KEY_BYTES.name}", came)
    if KEY in names:
        keys = read_keys(topic, pick(records["key"], rows["rn"]), schema_by_id)
        found = found.append_column(f"c.{KEY}", keys.values)
        unread = [
            BadRecord(row=rows["rn"][place].as_py(), phase="decode", error="InvalidKey", message=w)
            for place, w in keys.wrong.items()
        ]
        bad += unread
        rows, found = (_without(each, [b.row for b in unread]) for each in (rows, found))
    for name in found.column_names[1:]:
        rows = rows.append_column(name, found[name])
    return rows, bad


def headers_as_maps(lists: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | None:
    """Return headers of which no record has two, as the maps that SQL makes, without it; None: some
    records have more, and the last one of a name counts."""
    whole = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    sizes = pc.fill_null(pc.list_value_length(whole), 0)
    if (pc.max(sizes).as_py() or 0) > 1:
        return None
    flat = pc.list_flatten(whole)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes.to_numpy())]), pa.int32())
    keys, values = pc.struct_field(flat, "key"), pc.struct_field(flat, "value")
    return pa.chunked_array([pa.MapArray.from_arrays(offsets, keys, values)])


def _with(rows: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    for name, column in columns.items():
        rows = rows.append_column(f"c.{name}", column)
    return rows


def _without(rows: pa.Table, numbers: list[int]) -> pa.Table:
    if not numbers:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["rn"], pa.array(numbers, pa.int64()))))
