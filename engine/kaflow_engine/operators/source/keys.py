"""The Kafka keys of records as values of the type that a query reads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.formats.avro.keys import decode_keys
from kaflow_engine.formats.contract import SchemaById
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.keys import WIDTHS
from kaflow_engine.formats.pick import at_places
from kaflow_engine.formats.types import fields_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.key_formats import (
    WINDOWED_END,
    WINDOWED_KEY,
    WINDOWED_START,
    KeyFormat,
    WindowOfKey,
    of_value,
    window_of,
)

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
    if (window := window_of(topic.key_format)) is not None:
        return _windowed(topic, window, keys.combine_chunks(), schema_by_id)
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
    return Keys(at_places(read, places.take(found.good), len(keys)), wrong)


def _avro(kind: str, keys: pa.Array, schema_by_id: SchemaById) -> Keys:
    places = pc.indices_nonzero(keys.is_valid())
    read, found = decode_keys(keys.take(places), kind, schema_by_id)
    wrong = {places[bad.row].as_py(): f"the key: {bad.message}" for bad in found.bad}
    return Keys(at_places(read, places.take(found.good), len(keys)), wrong)


def _windowed(
    topic: TopicParams, window: WindowOfKey, keys: pa.Array, schema_by_id: SchemaById
) -> Keys:
    """Read what stands before the window, and its times behind that."""
    names = (WINDOWED_START,) if window == "windowed" else (WINDOWED_END, WINDOWED_START)
    width = WIDTHS["long"] * len(names)
    long = pc.greater_equal(pc.binary_length(keys), width)
    fitting = pc.if_else(long, keys, None)
    kind = next(c.type for c in fields_of(topic.key_type) if c.name == WINDOWED_KEY)
    inside = replace(topic, key_format=of_value(topic.key_format), key_type=kind)
    before = pa.chunked_array([pc.binary_slice(fitting, 0, -width)])
    read = read_keys(inside, before, schema_by_id)
    rows = pa.table({"times": pc.binary_slice(fitting, -width, None)})
    parts = (
        f"CAST(CAST(times[{n * 8 + 1}:{n * 8 + 8}] AS BIT) AS BIGINT) AS {identifier(name)}"
        for n, name in enumerate(names)
    )
    times = query(f"SELECT {', '.join(parts)} FROM rows", rows=rows)
    values = _one(read.values)
    order = (WINDOWED_START, WINDOWED_END)[: len(names)]
    fields = {WINDOWED_KEY: values, **{name: _one(times[name]) for name in order}}
    wrong = {
        place: f"the key has {len(keys[place].as_py())} bytes, and a window takes {width}"
        for place in pc.indices_nonzero(pc.invert(pc.fill_null(long, True))).to_pylist()
    }
    missing = pc.invert(values.is_valid())
    found = pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=missing)
    return Keys(found, {**read.wrong, **wrong})


def _one(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
