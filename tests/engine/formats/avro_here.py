"""Avro records as the tests of both directions make them."""

import datetime as dt
import io
import json

import fastavro
import pyarrow as pa

from kaflow_engine.formats.avro.decode import decode_avro
from kaflow_engine.formats.avro.schema import columns_of
from kaflow_engine.model.columns import Column

UTC = dt.UTC
UTC = dt.UTC
COLUMNS = (
    Column("bo", "BOOLEAN"),
    Column("i", "INTEGER"),
    Column("n", "BIGINT"),
    Column("f", "FLOAT"),
    Column("d", "DOUBLE"),
    Column("s", "VARCHAR"),
    Column("b", "BLOB"),
    Column("da", "DATE"),
    Column("ti", "TIME"),
    Column("ts", "TIMESTAMP"),
    Column("de", "DECIMAL(10,2)"),
    Column("l", "BIGINT[]"),
    Column("st", 'STRUCT("x" BIGINT, "y" VARCHAR[])'),
    Column("m", "MAP(VARCHAR, DECIMAL(5,1))"),
)


def record(**fields):
    return {
        "type": "record",
        "name": "V",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def frame(schema, row, schema_id=1):
    stream = io.BytesIO()
    stream.write(b"\0" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), row)
    return stream.getvalue()


def decode(values, schema, columns=None):
    text = json.dumps(schema)
    return decode_avro(pa.array(values, pa.binary()), columns or columns_of(text), lambda _: text)


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}
