"""The Kafka keys of records as values of the type that a query reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.formats.contract import SchemaById, format_of
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.keys import WIDTHS
from kaflow_engine.formats.types import fields_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.key_formats import KeyFormat

_SQL: Mapping[KeyFormat, str] = {
    "text": "TRY(decode(key))",
    "int": "CASE WHEN octet_length(key) = 4 THEN CAST(CAST(key AS BIT) AS INTEGER) END",
    "long": "CASE WHEN octet_length(key) = 8 THEN CAST(CAST(key AS BIT) AS BIGINT) END",
    "bytes": "key",
}


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys as they were read."""

    values: Any
    """Of the type of `_key` (Arrow); null where a record has no key, or none that can be read."""
    wrong: Mapping[int, str]
    """Of keys that cannot be read, by their places: why."""


def read_keys(topic: TopicParams, keys: pa.ChunkedArray, schema_by_id: SchemaById) -> Keys:
    """Read keys (binary) as the format of their topic says.

    Args:
        topic: Whose keys they are.
        keys: Null where a record has none.
        schema_by_id: Writer schemas of Avro.
    """
    if topic.key_format == "json":
        return _json(topic.key_type, keys.combine_chunks())
    if topic.key_format == "avro":
        return _avro(topic.key_type, keys.combine_chunks(), schema_by_id)
    if topic.key_format == "text":
        try:
            return Keys(keys.cast(pa.string()), {})
        except pa.ArrowInvalid:
            pass  # some are no UTF-8
    rows = pa.table({"key": keys})
    values = query(f"SELECT {_SQL[topic.key_format]} AS k FROM rows", rows=rows)["k"]
    lost = pc.indices_nonzero(pc.and_(keys.is_valid(), values.is_null())).to_pylist()
    return Keys(values, {place: _why(topic.key_format, keys[place].as_py()) for place in lost})


def _why(form: KeyFormat, key: bytes) -> str:
    if form not in WIDTHS:
        return "the key is no UTF-8"
    return f"the key has {len(key)} bytes, and one of format {form} has {WIDTHS[form]}"


def _json(kind: str, keys: pa.Array) -> Keys:
    rows = pa.table({"key": keys})
    sql = "SELECT coalesce(json_valid(TRY(decode(key))), FALSE) AS ok FROM rows"
    ok = query(sql, rows=rows)["ok"].combine_chunks()
    places = pc.indices_nonzero(ok)
    wrapped = pc.binary_join_element_wise(b'{"key":', keys.take(places), b"}", b"")
    found = decode_json(wrapped, [Column("key", kind)])
    read = found.table["key"].combine_chunks()
    wrong = {
        place: "the key is no JSON"
        for place in pc.indices_nonzero(pc.and_(keys.is_valid(), pc.invert(ok))).to_pylist()
    }
    wrong |= {places[bad.row].as_py(): f"the key is no {kind}" for bad in found.bad}
    return Keys(_at_places(read, places.take(found.good), len(keys)), wrong)


def _avro(kind: str, keys: pa.Array, schema_by_id: SchemaById) -> Keys:
    places = pc.indices_nonzero(keys.is_valid())
    found = format_of("avro").decode(keys.take(places), fields_of(kind), schema_by_id)
    columns = [column.combine_chunks() for column in found.table.columns]
    read = pa.StructArray.from_arrays(columns, fields=list(found.table.schema))
    wrong = {places[bad.row].as_py(): f"the key: {bad.message}" for bad in found.bad}
    return Keys(_at_places(read, places.take(found.good), len(keys)), wrong)


def _at_places(values: pa.Array, places: pa.Array, count: int) -> pa.Array:
    """Return values at their places among so many, and null at the others."""
    at = pc.index_in(pa.array(np.arange(count)), places.cast(pa.int64()))
    return values.take(at)
