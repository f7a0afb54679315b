"""Protobuf messages to columns, written by Protobuf's own library."""

import base64
import datetime as dt

import pyarrow as pa
import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.protobuf.compile import file_of
from kaflow_engine.formats.protobuf.read import class_of, columns_of
from kaflow_engine.formats.references import with_references
from kaflow_engine.formats.schema_registry import UnknownSchema
from kaflow_engine.model.columns import Column
from tests.engine.formats.protobuf_here import (
    PROTOBUF,
    SCHEMA,
    TYPES,
    UNSET,
    decode,
    frame,
    message,
)

UTC = dt.UTC

READ = [
    ("d", -0.1, -0.1),
    ("f", 1.5, 1.5),
    ("i", -(2**31), -(2**31)),
    ("n", -(2**63), -(2**63)),
    ("ui", 2**32 - 1, 2**32 - 1),
    ("un", 2**64 - 1, 2**64 - 1),
    ("si", -(2**31), -(2**31)),
    ("sn", -(2**63), -(2**63)),
    ("fi", 2**32 - 1, 2**32 - 1),
    ("fn", 2**64 - 1, 2**64 - 1),
    ("sfi", -(2**31), -(2**31)),
    ("sfn", -(2**63), -(2**63)),
    ("bo", True, True),
    ("s", "é\0", "é\0"),
    ("b", b"\x00\xff", b"\x00\xff"),
    ("state", 1, "PAID"),
    ("state", 7, "7"),
    ("maybe", 0, 0),
    ("left", "", ""),
    ("right", 0, 0),
    ("at", {"seconds": -1, "nanos": 999_999_999}, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("at", {}, dt.datetime(1970, 1, 1)),
    ("wrapped", {"value": 5}, 5),
    ("wrapped", {}, 0),
    ("text", {"value": "x"}, "x"),
    ("item", {"sku": "a", "count": 0}, {"sku": "a", "count": 0}),
    ("item", {}, {"sku": "", "count": None}),
    ("items", [{"sku": "a"}, {"count": 2}], [{"sku": "a", "count": None}, {"sku": "", "count": 2}]),
    ("numbers", [1, -1, 0], [1, -1, 0]),
    ("times", [{"seconds": 1}], [dt.datetime(1970, 1, 1, 0, 0, 1)]),
    ("counts", {"a": 1}, [("a", 1)]),
    ("by_id", {7: {"sku": "q"}}, [(7, {"sku": "q", "count": None})]),
    ("before", {"s": "x", "n": 5}, '{"n": "5", "s": "x"}'),
    ("any", {"a": True}, '{"a": true}'),
    ("maybe_state", 0, "UNKNOWN"),
    ("nothing", {}, "{}"),
]


def test_fields_are_columns():
    assert columns_of(SCHEMA) == tuple(Column(name, kind) for name, kind in TYPES.items())


@pytest.mark.parametrize(("field", "value", "expected"), READ)
def test_reads(field, value, expected):
    values = [frame(message(**{field: value})), frame(message())]
    found = decode(values, columns=[Column(field, TYPES[field])])
    assert found.bad == ()
    assert found.table.to_pylist() == [{field: expected}, {field: UNSET.get(field)}]


def test_all_fields_of_many_messages():
    values = [frame(message(**{field: value})) for field, value, _ in READ]
    found = decode(values)
    assert found.bad == ()
    expected = [{**dict.fromkeys(TYPES), **UNSET, field: value} for field, _, value in READ]
    assert found.table.to_pylist() == expected


OLD = """
syntax = "proto2";
message V {
  required string a = 1;
  optional string b = 2;
  optional int64 c = 3 [default = 9];
}
"""


def test_proto2():
    found = decode([frame(message(OLD, a="x")), frame(message(OLD, a="y", b="", c=1))], OLD)
    assert found.table.to_pylist() == [{"a": "x", "b": None, "c": 9}, {"a": "y", "b": "", "c": 1}]
    broken = decode([frame(b"\x0a\x01\xff"), frame(b"\x0a\x01x")], OLD)
    assert broken.table.to_pylist() == [{"a": "x", "b": None, "c": 9}]
    assert [(bad.row, bad.error) for bad in broken.bad] == [(0, "NotUtf8")]


def test_each_bad_value_is_taken_out_alone():
    good = frame(message(s="x"))
    values = [
        good,
        good[:-1],
        frame(b"\xff"),
        b"",
        b"\1" + good[1:],
        good[:5],
        frame(b"", indexes=b"\x02"),
        frame(b"", indexes=b"\x01"),
        frame(b"", indexes=b"\x02\x0c"),
        frame(message(at={"seconds": 2**62})),
        frame(b"\x72\x01\xff"),
        good,
    ]
    found = decode(values)
    assert found.good.to_pylist() == [0, 11]
    assert [row["s"] for row in found.table.to_pylist()] == ["x", "x"]
    assert [(bad.row, bad.error) for bad in found.bad] == [
        (1, "InvalidProtobuf"),
        (2, "InvalidProtobuf"),
        (3, "NotFramed"),
        (4, "NotFramed"),
        (5, "NotFramed"),
        (6, "NotFramed"),
        (7, "NotFramed"),
        (8, "UnknownSchema"),
        (9, "WrongType"),
        (10, "InvalidProtobuf"),
    ]
    about = {bad.row: bad.message for bad in found.bad}
    assert about[5] == "the message indexes end too early"
    assert about[8] == "schema 1: the Protobuf schema has no message at 6"
    assert about[9] == "column 'at': a time beyond those of a TIMESTAMP"


def test_indexes_say_which_message_it_is():
    columns = [Column("name", "VARCHAR"), Column("x", "BIGINT")]
    other = message(path=(1,), name="n")
    inner = message(path=(1, 0), x=5)
    values = [
        frame(other, indexes=b"\x02\x02"),
        frame(inner, indexes=b"\x04\x02\x00"),
        frame(message(s="first"), indexes=b"\x02\x00"),
        frame(message(s="first")),
    ]
    found = decode(values, columns=columns)
    assert found.bad == ()
    assert found.table.to_pylist() == [
        {"name": "n", "x": None},
        {"name": None, "x": 5},
        {"name": None, "x": None},
        {"name": None, "x": None},
    ]


def test_fields_the_schema_does_not_have_are_left_and_missing_ones_are_null():
    newer = 'syntax = "proto3"; message V { string a = 1; int64 b = 2; }'
    older = 'syntax = "proto3"; message V { string a = 1; }'
    schemas = {1: older, 2: newer}

    def by_id(number):
        if number not in schemas:
            raise UnknownSchema(number)
        return schemas[number]

    values = [
        frame(message(newer, a="x", b=5), 1),
        frame(message(newer, a="7", b=6), 2),
        frame(b"", 3),
        frame(message(newer, a="y"), 2),
    ]
    columns = [Column("a", "BIGINT"), Column("b", "BIGINT")]
    found = PROTOBUF.decode(pa.array(values, pa.binary()), columns, by_id)
    assert found.table.to_pylist() == [{"a": 7, "b": 6}]
    assert [(bad.row, bad.error, bad.message) for bad in found.bad] == [
        (0, "WrongType", "column 'a': x is not a BIGINT"),
        (2, "UnknownSchema", "schema 3: is not in the registry"),
        (3, "WrongType", "column 'a': y is not a BIGINT"),
    ]


COMMON = 'syntax = "proto3"; package c; message Money { string units = 1; }'
USES = 'syntax = "proto3"; import "c/money.proto"; message V { c.Money price = 1; }'


def test_imports_come_with_the_schema():
    whole = with_references(USES, {"c/money.proto": COMMON})
    assert columns_of(whole) == (Column("price", 'STRUCT("units" VARCHAR)'),)


def test_serialized_descriptors_are_schemas_too():
    def text(schema):
        return base64.b64encode(file_of(schema).serialized_pb).decode()

    assert columns_of(text(SCHEMA)) == columns_of(SCHEMA)
    uses = file_of(with_references(USES, {"c/money.proto": COMMON})).serialized_pb
    whole = with_references(base64.b64encode(uses).decode(), {"c/money.proto": text(COMMON)})
    assert columns_of(whole) == (Column("price", 'STRUCT("units" VARCHAR)'),)
    value = frame(class_of(whole, (0,))(price={"units": "5"}).SerializeToString())
    assert decode([value], whole).table.to_pylist() == [{"price": {"units": "5"}}]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("nope", r"not a Protobuf schema: value.proto:1:1: [^W]*$"),
        (USES, r"not a Protobuf schema: c/money.proto: File not found.*"),
        ('syntax = "proto3";', "the Protobuf schema has no message"),
        ('syntax = "proto3"; message V {}', "message V has no fields"),
        (with_references(USES, {"../money.proto": COMMON}), "cannot be the name of a Protobuf"),
        (with_references(USES, {"/c/money.proto": COMMON}), "cannot be the name of a Protobuf"),
    ],
)
def test_refuses_what_has_no_columns(schema, message):
    with pytest.raises(ModelError, match=message):
        columns_of(schema)
