"""Headers of rows that are ready, from the text in which they travelled."""

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query


def headers_of(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return what `formats.headers` made as lists of names and values.

    Args:
        texts: Null where there are none.
        kind: Of the lists: structs of `key` and `value`.
    """
    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts), kind)])
    pairs = """from_json(h, '[["VARCHAR"]]')"""
    entry = "lambda e: {'key': e[1], 'value': from_base64(e[2])}"
    once = pc.unique(texts)  # those of changes are few
    rows = pa.table({"h": once})
    found = query(f"SELECT list_transform({pairs}, {entry}) AS h FROM rows", rows=rows)
    lists = found["h"].cast(kind).combine_chunks()
    return pa.chunked_array([lists.take(pc.index_in(texts, once).combine_chunks())])
