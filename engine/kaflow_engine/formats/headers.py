"""Headers of Kafka records on their way from a query to a sink: as text, beside key and value."""

from collections.abc import Mapping

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import literal
from kaflow_engine.model.letters import PREFIX

_BYTES: Mapping[str, str] = {
    "MAP(VARCHAR, BLOB)": "e.value",
    "MAP(VARCHAR, VARCHAR)": "encode(e.value)",
}
"""The types that headers may have, and what of an entry is a value as bytes."""
TYPES = tuple(_BYTES)


def headers_sql(kind: str, sql: str) -> str:
    """Return a VARCHAR expression: a JSON list of names with values in base64; NULL for NULL.

    Those that the engine writes itself are left out: one that says for which pipeline a record was
    sent again would hide the row from all others.

    Args:
        kind: One of TYPES.
        sql: The headers, a map.
    """
    others = f"list_filter(map_entries({sql}), lambda e: NOT starts_with(e.key, {literal(PREFIX)}))"
    pair = f"lambda e: [e.key, to_base64({_BYTES[kind]})]"
    return f"CAST(to_json(list_transform({others}, {pair})) AS VARCHAR)"


def headers_of(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return what `headers_sql` made as lists of names and values.

    Args:
        texts: Null where there are none.
        kind: Of the lists: structs of `key` and `value`.
    """
    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts), kind)])
    pairs = """from_json(h, '[["VARCHAR"]]')"""
    entry = "lambda e: {'key': e[1], 'value': from_base64(e[2])}"
    rows = pa.table({"h": texts})
    found = query(f"SELECT list_transform({pairs}, {entry}) AS h FROM rows", rows=rows)
    return found["h"].cast(kind)
