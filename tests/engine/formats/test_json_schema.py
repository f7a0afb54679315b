"""JSON Schemas to columns and back, and values beside Confluent's own serializer."""

import json

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from jsonschema import Draft7Validator

from kaflow_engine.duck.queries import query
from kaflow_engine.errors import ModelError
from kaflow_engine.formats.contract import IdSchema, format_of
from kaflow_engine.formats.json_schema.read import columns_of
from kaflow_engine.formats.json_schema.write import json_schema
from kaflow_engine.formats.references import with_references
from kaflow_engine.formats.schema_registry import UnknownSchema
from kaflow_engine.model.columns import Column
from tests.engine.formats.avro_here import COLUMNS

JSON_SCHEMA = format_of("json_schema")
DECIMAL = {
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.type": "bytes",
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
}

READ = [
    ({"type": "string"}, "VARCHAR"),
    ({"type": "integer"}, "BIGINT"),
    ({"type": "integer", "connect.type": "int8"}, "TINYINT"),
    ({"type": "integer", "connect.type": "int16"}, "SMALLINT"),
    ({"type": "integer", "connect.type": "int32"}, "INTEGER"),
    ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, "UBIGINT"),
    ({"type": "integer", "minimum": 0}, "BIGINT"),
    (
        {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp"},
        "BIGINT",
    ),
    ({"type": "number"}, "DOUBLE"),
    ({"type": "number", "connect.type": "float32"}, "FLOAT"),
    ({"type": "number", **DECIMAL}, "DECIMAL(10,2)"),
    ({"type": "string", **DECIMAL}, "VARCHAR"),
    ({"type": ["integer", "number"]}, "DOUBLE"),
    ({"type": "boolean"}, "BOOLEAN"),
    ({"type": "null"}, "VARCHAR"),
    ({"type": ["null", "integer"]}, "BIGINT"),
    ({"type": ["string", "integer"]}, "VARCHAR"),
    ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, "BIGINT"),
    ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "BOOLEAN"),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "VARCHAR"),
    ({"enum": ["a", "b"]}, "VARCHAR"),
    ({"enum": ["a", 1]}, "VARCHAR"),
    ({"const": "a"}, "VARCHAR"),
    ({"type": "string", "format": "date-time"}, "TIMESTAMP"),
    ({"type": "string", "format": "date"}, "DATE"),
    ({"type": "string", "format": "time"}, "TIME"),
    ({"type": "string", "format": "uuid"}, "UUID"),
    ({"type": "string", "format": "email"}, "VARCHAR"),
    ({"type": "string", "contentEncoding": "base64"}, "BLOB"),
    ({"type": "string", "connect.type": "bytes"}, "BLOB"),
    ({"type": "array", "items": {"type": "integer"}}, "BIGINT[]"),
    ({"type": "array"}, "VARCHAR[]"),
    ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, "VARCHAR"),
    (
        {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}},
        'STRUCT("x" BIGINT, "y" VARCHAR)',
    ),
    ({"properties": {"x": {"type": "integer"}}}, 'STRUCT("x" BIGINT)'),
    ({"type": "object"}, "VARCHAR"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "MAP(VARCHAR, BIGINT)"),
    ({"$ref": "#/definitions/id"}, "BIGINT"),
    ({"$ref": "other.json#/definitions/name"}, "VARCHAR"),
    ({"$ref": "other.json"}, 'STRUCT("z" BOOLEAN)'),
    ({"$ref": "#"}, 'STRUCT("c" VARCHAR)'),
    (
        {"allOf": [{"$ref": "other.json"}, {"properties": {"q": {"type": "integer"}}}]},
        'STRUCT("z" BOOLEAN, "q" BIGINT)',
    ),
    (True, "VARCHAR"),
    ({}, "VARCHAR"),
]
OTHER = {
    "type": "object",
    "properties": {"z": {"type": "boolean"}},
    "definitions": {"name": {"type": "string"}},
}


def schema_with(node):
    about = {"type": "object", "properties": {"c": node}}
    return json.dumps({**about, "definitions": {"id": {"type": "integer"}}})


@pytest.mark.parametrize(("node", "kind"), READ)
def test_a_property_is_a_column(node, kind):
    whole = with_references(schema_with(node), {"other.json": json.dumps(OTHER)})
    assert columns_of(whole) == (Column("c", kind),)


def test_of_properties_that_differ_by_case_the_first_is_a_column():
    found = columns_of(json.dumps({"properties": {"a": {"type": "integer"}, "A": {}}}))
    assert found == (Column("a", "BIGINT"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "not a JSON Schema: nope"),
        ('{"type": "string"}', "not that of an object with properties"),
        ('{"type": "object"}', "not that of an object with properties"),
        (schema_with({"$ref": "gone.json"}), "'gone.json', which the registry does not list"),
        (schema_with({"$ref": "#/definitions/gone"}), "'#/definitions/gone', which is not there"),
    ],
)
def test_refuses_what_has_no_columns(text, message):
    with pytest.raises(ModelError, match=message):
        columns_of(text)


EVERY = (
    *COLUMNS,
    Column("u", "UUID"),
    Column("h", "UBIGINT"),
    Column("hh", "HUGEINT"),
    Column("ti2", "TINYINT"),
)


def test_what_is_derived_reads_back_as_the_same_columns():
    assert columns_of(json_schema(EVERY)) == EVERY


@pytest.mark.parametrize(
    ("kind", "back"),
    [
        ("TIMESTAMPTZ", "TIMESTAMP"),
        ("TIMESTAMP_NS", "TIMESTAMP"),
        ("INTERVAL", "VARCHAR"),
        ("JSON", "VARCHAR"),
        ("MAP(BIGINT, BIGINT)", "MAP(VARCHAR, BIGINT)"),
    ],
)
def test_some_types_have_no_word_of_their_own(kind, back):
    assert columns_of(json_schema([Column("c", kind)])) == (Column("c", back),)


def test_every_property_may_be_null_and_none_is_required_and_there_are_no_others():
    found = json.loads(json_schema([Column("a", "BIGINT")], "Order"))
    assert found == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {
            "a": {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int64"}]}
        },
        "additionalProperties": False,
    }


ROW = """
SELECT true AS bo, -2147483648 AS i, 9223372036854775807 AS n, 1.5::FLOAT AS f, -0.1::DOUBLE AS d,
    'é' AS s, '\\x00\\xFF'::BLOB AS b, DATE '1969-12-31' AS da, TIME '23:59:59.999999' AS ti,
    TIMESTAMP '1969-12-31 23:59:59.999999' AS ts, -12345678.90::DECIMAL(10,2) AS de,
    [1, NULL, -3]::BIGINT[] AS l, {'x': 5::BIGINT, 'y': ['é', NULL]} AS st,
    MAP {'k': 7::DECIMAL(5,1), 'n': NULL} AS m,
    '2f1e8a30-6c1d-4c0e-8d51-0123456789ab'::UUID AS u, 18446744073709551615::UBIGINT AS h,
    -17014118346046923173168730371588410572::HUGEINT AS hh, 127::TINYINT AS ti2
"""


def both_rows():
    empty = ", ".join(f"NULL::{column.type}" for column in EVERY)
    return query(f"{ROW} UNION ALL SELECT {empty}")


def test_a_value_of_every_type_and_null_come_back():
    schema = JSON_SCHEMA.schema_of(EVERY, "Value")
    encoder = JSON_SCHEMA.encoder(EVERY, IdSchema(7, schema))
    rows = both_rows()
    encoded = encoder.encode(rows)
    assert encoded.bad == ()
    validator = Draft7Validator(json.loads(schema))
    for value in encoded.values:
        assert value[:5] == b"\0\0\0\0\x07"
        validator.validate(json.loads(value[5:]))
    decoded = JSON_SCHEMA.decode(encoded.array, EVERY, lambda _: schema)
    assert decoded.bad == ()
    assert decoded.table.to_pylist() == rows.to_pylist()


def test_confluents_serializer_and_ours_read_each_other():
    columns = (Column("id", "VARCHAR"), Column("n", "BIGINT"), Column("tags", "VARCHAR[]"))
    text = json_schema(columns)
    client = SchemaRegistryClient.new_client({"url": "mock://json"})
    context = SerializationContext("orders", MessageField.VALUE)
    row = {"id": "a", "n": None, "tags": ["x", "ü"]}
    value = JSONSerializer(text, client)(row, context)
    number = int.from_bytes(value[1:5], "big")
    values, schemas = pa.array([value], pa.binary()), {number: text}
    decoded = JSON_SCHEMA.decode(values, columns, schemas.__getitem__)
    assert (decoded.bad, decoded.table.to_pylist()) == ((), [row])
    own = client.register_schema("orders-value", Schema(text, "JSON"))
    encoder = JSON_SCHEMA.encoder(columns, IdSchema(own, text))
    (written,) = encoder.encode(pa.Table.from_pylist([row])).values
    assert JSONDeserializer(text, schema_registry_client=client)(written, context) == row


def test_values_that_do_not_fit_are_bad_alone():
    schema = json_schema([Column("a", "BIGINT")])

    def by_id(number):
        if number != 7:
            raise UnknownSchema(number)
        return schema

    head = b"\0\0\0\0\7"
    values = [head + b'{"a":1}', head + b'{"a":"x"}', b'{"a":1}', b"\0\0\0\0\x08{}", head, b"\0"]
    values += [head + b"[]", head + b'{"a":2,"other":true}']
    decoded = JSON_SCHEMA.decode(pa.array(values, pa.binary()), columns_of(schema), by_id)
    assert decoded.table.to_pylist() == [{"a": 1}, {"a": 2}]
    assert decoded.good.to_pylist() == [0, 7]
    assert [(bad.row, bad.error) for bad in decoded.bad] == [
        (1, "WrongType"),
        (2, "NotFramed"),
        (3, "UnknownSchema"),
        (4, "InvalidJson"),
        (5, "NotFramed"),
        (6, "NotAnObject"),
    ]
    assert decoded.bad[2].message == "schema 8: is not in the registry"
