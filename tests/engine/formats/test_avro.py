"""Avro records to columns, always beside fastavro."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from kaflow_engine.errors import SourceError
from kaflow_engine.formats.avro.decode import decode_avro
from kaflow_engine.formats.avro.schema import columns_of
from kaflow_engine.formats.schema_registry import UnknownSchema
from kaflow_engine.model.columns import Column
from tests.engine.formats.avro_here import COLUMNS, UTC, decode, frame, logical, record

READ = [
    ("int", -5, "INTEGER", -5),
    ("long", 2**62, "BIGINT", 2**62),
    ("float", 1.5, "FLOAT", 1.5),
    ("double", -0.1, "DOUBLE", -0.1),
    ("boolean", True, "BOOLEAN", True),
    ("bytes", b"\xff", "BLOB", b"\xff"),
    ("string", "é", "VARCHAR", "é"),
    ("null", None, "VARCHAR", None),
    (["null", "long"], None, "BIGINT", None),
    (["long", "null"], 7, "BIGINT", 7),
    (["long", "null"], None, "BIGINT", None),
    (["long"], 7, "BIGINT", 7),
    (logical("int", "date"), dt.date(1960, 1, 1), "DATE", dt.date(1960, 1, 1)),
    (logical("int", "time-millis"), dt.time(1, 2, 3), "TIME", dt.time(1, 2, 3)),
    (logical("long", "time-micros"), dt.time(1, 2, 3, 4), "TIME", dt.time(1, 2, 3, 4)),
    (
        logical("long", "timestamp-millis"),
        dt.datetime(1969, 1, 1, tzinfo=UTC),
        "TIMESTAMP",
        dt.datetime(1969, 1, 1),
    ),
    (
        logical("long", "timestamp-micros"),
        dt.datetime(2026, 1, 1, 1, 1, 1, 5, UTC),
        "TIMESTAMP",
        dt.datetime(2026, 1, 1, 1, 1, 1, 5),
    ),
    (
        logical("long", "local-timestamp-micros"),
        dt.datetime(2026, 1, 1),
        "TIMESTAMP",
        dt.datetime(2026, 1, 1),
    ),
    (
        logical("bytes", "decimal", precision=10, scale=2),
        Decimal("-1.28"),
        "DECIMAL(10,2)",
        Decimal("-1.28"),
    ),
    (
        {"name": "F", "size": 5, **logical("fixed", "decimal", precision=10, scale=2)},
        Decimal("-99.99"),
        "DECIMAL(10,2)",
        Decimal("-99.99"),
    ),
    (
        logical("string", "uuid"),
        "00000000-0000-0000-0000-000000000007",
        "UUID",
        "00000000-0000-0000-0000-000000000007",
    ),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "VARCHAR", "B"),
    ({"type": "fixed", "name": "F", "size": 3}, b"abc", "BLOB", b"abc"),
    ({"type": "array", "items": ["null", "long"]}, [1, None, 300], "BIGINT[]", [1, None, 300]),
    ({"type": "map", "values": "string"}, {"k": ""}, "MAP(VARCHAR, VARCHAR)", [("k", "")]),
    (["null", record(x="long")], {"x": 1}, 'STRUCT("x" BIGINT)', {"x": 1}),
    (["null", "long", "string"], "a", "VARCHAR", '"a"'),
    (["null", "long", "string"], 5, "VARCHAR", "5"),
    (record(), {}, "VARCHAR", "{}"),
]


@pytest.mark.parametrize(("kind", "value", "type_", "expected"), READ)
def test_reads(kind, value, type_, expected):
    schema = record(c=kind)
    schema["name"] = "Outer"
    assert columns_of(json.dumps(schema)) == (Column("c", type_),)
    found = decode([frame(schema, {"c": value})] * 2, schema)
    assert found.bad == ()
    assert found.table.to_pylist() == [{"c": expected}] * 2


def test_a_record_inside_of_itself_is_json_text():
    schema = record(v="long", next=["null", "V"])
    found = decode([frame(schema, {"v": 1, "next": {"v": 2, "next": None}})], schema)
    assert found.table.to_pylist() == [{"v": 1, "next": '{"v":2,"next":null}'}]


def test_each_bad_value_is_taken_out_alone():
    schema = record(s="string", n=["null", "long"])
    good = frame(schema, {"s": "ab", "n": 5})
    not_text = good.replace(b"ab", b"\xff\xff")
    values = [
        good,
        good + b"x",
        good[:-1],
        b"",
        b"\0\0",
        b"\1" + good[1:],
        good[:5],
        not_text,
        good,
    ]
    values.append(good[:-2] + b"\x09")
    found = decode(values, schema)
    assert found.good.to_pylist() == [0, 8]
    assert found.table.to_pylist() == [{"s": "ab", "n": 5}] * 2
    kinds = ["InvalidAvro"] * 2 + ["NotFramed"] * 3 + ["InvalidAvro"] * 3
    assert [bad.error for bad in found.bad] == kinds
    assert [bad.row for bad in found.bad] == [1, 2, 3, 4, 5, 6, 7, 9]


def test_schemas_of_one_batch_may_differ():
    schemas = {1: record(a="long", b="string"), 2: record(b="int", c="string")}

    def by_id(schema_id):
        if schema_id not in schemas:
            raise UnknownSchema(schema_id)
        return json.dumps(schemas[schema_id])

    values = [
        frame(schemas[1], {"a": 1, "b": "7"}, 1),
        frame(schemas[2], {"b": 8, "c": "x"}, 2),
        frame(schemas[2], {"b": 8, "c": "x"}, 3),
        frame(schemas[1], {"a": 2, "b": "y"}, 1),
    ]
    columns = [Column("b", "BIGINT"), Column("c", "VARCHAR")]
    found = decode_avro(pa.array(values), columns, by_id)
    assert found.table.to_pylist() == [{"b": 7, "c": None}, {"b": 8, "c": "x"}]
    assert [(bad.row, bad.error) for bad in found.bad] == [(2, "UnknownSchema"), (3, "WrongType")]


def test_a_registry_that_does_not_answer_is_no_bad_value():
    def by_id(schema_id):
        raise SourceError("down")

    with pytest.raises(SourceError):
        decode_avro(pa.array([b"\0\0\0\0\1"]), COLUMNS, by_id)


def test_a_time_can_be_asked_for_as_a_number():
    schema = record(t=["null", logical("long", "timestamp-millis")])
    value = frame(schema, {"t": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)})
    assert decode([value], schema, [Column("t", "BIGINT")]).table.to_pylist() == [{"t": 1000}]


def test_a_slice_of_an_array_is_read():
    schema = record(s="string")
    values = pa.array([frame(schema, {"s": str(index)}) for index in range(5)]).slice(2, 2)
    text = json.dumps(schema)
    found = decode_avro(values, columns_of(text), lambda _: text)
    assert found.table.column("s").to_pylist() == ["2", "3"]
