"""Columns to Protobuf messages, read by Protobuf's own library and by Confluent's."""

import datetime as dt
import warnings

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kaflow_engine.duck.queries import query
from kaflow_engine.errors import ModelError, SinkError
from kaflow_engine.formats.contract import IdSchema
from kaflow_engine.formats.protobuf.read import class_of, columns_of
from kaflow_engine.formats.protobuf.write import protobuf_schema
from kaflow_engine.formats.schema_registry import RegisteredSchema, Registry
from kaflow_engine.model.columns import Column
from tests.engine.formats.avro_here import COLUMNS
from tests.engine.formats.protobuf_here import PROTOBUF, decode

EVERY = (*COLUMNS[:11], Column("st", 'STRUCT("x" BIGINT, "y" VARCHAR[])'), *COLUMNS[13:])


def test_derives_the_schema():
    assert protobuf_schema([*EVERY, Column("l", 'STRUCT("z" TIMESTAMP)[]')], "Order") == (
        'syntax = "proto3";\n'
        "\n"
        'import "google/protobuf/timestamp.proto";\n'
        "\n"
        "message Order {\n"
        "  message st_type {\n"
        "    optional int64 x = 1;\n"
        "    repeated string y = 2;\n"
        "  }\n"
        "  message l_type {\n"
        "    google.protobuf.Timestamp z = 1;\n"
        "  }\n"
        "  optional bool bo = 1;\n"
        "  optional int32 i = 2;\n"
        "  optional int64 n = 3;\n"
        "  optional float f = 4;\n"
        "  optional double d = 5;\n"
        "  optional string s = 6;\n"
        "  optional bytes b = 7;\n"
        "  optional string da = 8;\n"
        "  optional string ti = 9;\n"
        "  google.protobuf.Timestamp ts = 10;\n"
        "  optional string de = 11;\n"
        "  st_type st = 12;\n"
        "  map<string, string> m = 13;\n"
        "  repeated l_type l = 14;\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([Column("a b", "BIGINT")], "'a b' cannot be a name in Protobuf"),
        ([Column("a", "BIGINT[][]")], r"no type for BIGINT\[\] inside of another \(at a\)"),
        (
            [Column("a", "STRUCT(b MAP(VARCHAR, BIGINT[]))")],
            r"no type for BIGINT\[\] inside of another \(at a.b\)",
        ),
        ([Column("a", "MAP(DOUBLE, BIGINT)")], r"no type for MAP\(DOUBLE, BIGINT\)"),
        ([Column("a_b", "BIGINT"), Column("aB", "BIGINT")], "not a Protobuf schema: .*JSON name"),
    ],
)
def test_refuses_what_protobuf_does_not_have(columns, message):
    with pytest.raises(ModelError, match=message):
        protobuf_schema(columns)


ROWS = """
SELECT true AS bo, -2147483648 AS i, 9223372036854775807 AS n, 1.5::FLOAT AS f, -0.1::DOUBLE AS d,
    'é' AS s, '\\x00\\xFF'::BLOB AS b, DATE '1969-12-31' AS da, TIME '23:59:59.999999' AS ti,
    TIMESTAMP '1969-12-31 23:59:59.999999' AS ts, -12345678.90::DECIMAL(10,2) AS de,
    {'x': 5::BIGINT, 'y': ['é', '']} AS st, MAP {'k': 7::DECIMAL(5,1)} AS m
UNION ALL SELECT false, 0, 0, 0, 0, '', ''::BLOB, NULL, NULL, NULL, NULL,
    {'x': NULL, 'y': NULL}, MAP {}
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""


def test_a_value_of_every_type_and_null_come_back():
    schema, rows = protobuf_schema(EVERY), query(ROWS)
    encoded = PROTOBUF.encoder(EVERY, IdSchema(7, schema)).encode(rows)
    assert encoded.bad == ()
    found = PROTOBUF.decode(encoded.array, EVERY, {7: schema}.__getitem__)
    assert found.bad == ()
    expected = rows.to_pylist()
    expected[1]["st"]["y"] = []  # Protobuf has no NULL for a list or a map
    expected[2]["m"] = []
    assert found.table.to_pylist() == expected
    message = class_of(schema, (0,)).FromString(encoded.values[0][6:])
    assert (message.de, message.da, message.ti) == ("-12345678.90", "1969-12-31", "23:59:59.999999")


@pytest.mark.parametrize(
    ("kind", "sql", "back"),
    [
        ("TIMESTAMPTZ", "'2026-01-01 01:02:03+02'", dt.datetime(2025, 12, 31, 23, 2, 3)),
        ("TIMESTAMP_S", "'2026-01-01 01:02:03'", dt.datetime(2026, 1, 1, 1, 2, 3)),
        ("UBIGINT", "18446744073709551615", 2**64 - 1),
        (
            "HUGEINT",
            "-17014118346046923173168730371588410572",
            "-17014118346046923173168730371588410572",
        ),
        ("UUID", "'2f1e8a30-6c1d-4c0e-8d51-0123456789ab'", "2f1e8a30-6c1d-4c0e-8d51-0123456789ab"),
        ("JSON", "'{\"a\":1}'", '{"a":1}'),
        ("INTERVAL", "'1 day'", "1 day"),
        (
            "MAP(BIGINT, STRUCT(a TIMESTAMP))",
            "MAP {1: {'a': TIMESTAMP 'epoch'}}",
            [(1, {"a": dt.datetime(1970, 1, 1)})],
        ),
        ("STRUCT(a BIGINT)[]", "[{'a': NULL}]", [{"a": None}]),
        ("TIMESTAMP[]", "[TIMESTAMP 'epoch']", [dt.datetime(1970, 1, 1)]),
    ],
)
def test_writes(kind, sql, back):
    columns = [Column("c", kind)]
    schema = protobuf_schema(columns)
    rows = query(f"SELECT CAST({sql} AS {kind}) AS c")
    encoded = PROTOBUF.encoder(columns, IdSchema(1, schema)).encode(rows)
    assert encoded.bad == ()
    assert decode(encoded.values, schema).table.to_pylist() == [{"c": back}]


@pytest.mark.parametrize(
    ("kind", "sql", "message"),
    [
        ("BIGINT[]", "[1, NULL]", "column 'c' has a NULL inside, and Protobuf has none there"),
        ("MAP(VARCHAR, BIGINT)", "MAP {'a': NULL}", "column 'c' has a NULL inside"),
        ("STRUCT(a BIGINT)[]", "[NULL]", "column 'c' has a NULL inside"),
        ("TIMESTAMP", "'infinity'", "column 'c': a time beyond the years 1 to 9999"),
    ],
)
def test_a_row_that_protobuf_cannot_hold_is_bad_alone(kind, sql, message):
    columns = [Column("c", kind)]
    rows = query(f"SELECT NULL::{kind} AS c UNION ALL SELECT CAST({sql} AS {kind})")
    schema = protobuf_schema(columns)
    encoded = PROTOBUF.encoder(columns, IdSchema(1, schema)).encode(rows)
    assert [value is None for value in encoded.values] == [False, True]
    ((row, error, why),) = [(bad.row, bad.error, bad.message) for bad in encoded.bad]
    assert (row, error) == (1, "CannotEncode")
    assert why.startswith(message)


def test_confluents_serializer_and_ours_read_each_other():
    columns = (Column("id", "VARCHAR"), Column("n", "BIGINT"), Column("tags", "VARCHAR[]"))
    text = protobuf_schema(columns)
    kind = class_of(text, (0,))
    client = SchemaRegistryClient.new_client({"url": "mock://protobuf"})
    context = SerializationContext("orders", MessageField.VALUE)
    settings = {"use.deprecated.format": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = ProtobufSerializer(kind, client, settings)(kind(id="a", tags=["x"]), context)
        read = ProtobufDeserializer(kind, settings, client)
    number = int.from_bytes(value[1:5], "big")
    theirs = client.get_schema(number).schema_str
    row = {"id": "a", "n": None, "tags": ["x"]}
    assert columns_of(theirs) == columns
    found = PROTOBUF.decode(pa.array([value], pa.binary()), columns, {number: theirs}.__getitem__)
    assert (found.bad, found.table.to_pylist()) == ((), [row])
    own = client.register_schema("orders-value", Schema(theirs, "PROTOBUF"))
    encoder = PROTOBUF.encoder(columns, IdSchema(own, text))
    (written,) = encoder.encode(pa.Table.from_pylist([row])).values
    assert written == value
    assert read(written, context) == kind(id="a", tags=["x"])


class FakeRegistry(Registry):
    """Has one schema, and takes all others."""

    def latest(self, subject):
        return RegisteredSchema(1, 1, self.user) if self.user else None

    def register(self, subject, schema, kind):
        return {"PROTOBUF": 2}[kind]


def schema(*names, kind="BIGINT"):
    return protobuf_schema([Column(name, kind) for name in names])


NUMBERS = [
    (None, schema("a")),
    (schema("a"), schema("a")),
    (schema("a"), schema("a", "b")),
    (schema("a", "b"), schema("a")),
    (schema("s", kind="STRUCT(a BIGINT)"), schema("s", kind="STRUCT(a BIGINT, b BIGINT)")),
]
MOVED = [
    (schema("a", "b"), schema("b", "a"), "field 1 as 'Value.a', and it would become 'Value.b'"),
    (schema("a", "b"), schema("b"), "field 1 as 'Value.a', and it would become 'Value.b'"),
    (
        schema("s", kind="STRUCT(a BIGINT, b BIGINT)[]"),
        schema("s", kind="STRUCT(b BIGINT)[]"),
        "field 1 as 'Value.s_type.a', and it would become 'Value.s_type.b'",
    ),
]


@pytest.mark.parametrize(("before", "after"), NUMBERS)
def test_registers_where_numbers_keep_their_meaning(before, after):
    assert PROTOBUF.register(FakeRegistry(url="http://x", user=before), "o-value", after) == 2


@pytest.mark.parametrize(("before", "after", "message"), MOVED)
def test_refuses_a_number_that_would_mean_another_field(before, after, message):
    with pytest.raises(SinkError) as raised:
        PROTOBUF.register(FakeRegistry(url="http://x", user=before), "o-value", after)
    assert raised.value.message == f"the schema of 'o-value' has {message}"
    assert raised.value.exit_code == 12
