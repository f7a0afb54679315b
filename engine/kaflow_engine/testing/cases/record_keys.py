"""Keys of records as cases say and show them: those of Avro as JSON."""

from collections.abc import Mapping

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import projects_of, topic_sinks
from kaflow_engine.formats.avro.keys import decode_keys, key_columns
from kaflow_engine.formats.keys import key_bytes_sql, text_of_key
from kaflow_engine.formats.types import fields_of


def as_object(key: bytes, kind: str) -> bytes:
    """Return a key of a type, given as JSON, as the object whose Avro has the same bytes."""
    (column, *_) = key_columns(kind)
    return key if fields_of(kind) else b'{"%s":%s}' % (column.name.encode(), key)


def shown_key(flow: Flow, topic: str, key: bytes | None, schemas: Mapping[int, str]) -> str | None:
    """Return the key of a record of an output, or of a dead letter, as people read it.

    Args:
        flow: Of the pipeline.
        topic: The topic of the record.
        key: Its key.
        schemas: By id.
    """
    sink = next((sink for sink in topic_sinks(flow) if sink.topic == topic), None)
    if key is None:
        return None
    if sink is None or sink.key_schema is None:
        return text_of_key("text" if sink is None else sink.key_format, key)
    columns = (column for column, _ in projects_of(flow, sink)[0].columns)
    kind = next(column.type for column in columns if column.name == sink.key)
    values, decoded = decode_keys(pa.array([key], pa.binary()), kind, schemas.__getitem__)
    assert not decoded.bad, decoded.bad
    text = f"SELECT {key_bytes_sql('json', kind, 'k')} AS k FROM rows"
    return query(text, rows=pa.table({"k": values}))["k"][0].as_py().decode()
