"""Avro records to columns and back, always beside fastavro."""

import datetime as dt
import io
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaflow_engine.errors import ModelError, SourceError
from kaflow_engine.formats.avro_in import decode_avro
from kaflow_engine.formats.avro_out import AvroEncoder
from kaflow_engine.formats.avro_schema import avro_schema, columns_of
from kaflow_engine.formats.decoded import schema_of
from kaflow_engine.formats.registry import UnknownSchema
from kaflow_engine.model.columns import Column

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


def test_derives_the_schema():
    columns = [
        *COLUMNS,
        Column("u", "UUID"),
        Column("z", "TIMESTAMPTZ"),
        Column("h", "UBIGINT"),
    ]
    schema = json.loads(avro_schema(columns))
    assert schema["name"] == "Value"
    assert all(f["type"][0] == "null" and f["default"] is None for f in schema["fields"])
    found = {f["name"]: f["type"][1] for f in schema["fields"]}
    assert found == {
        "bo": "boolean",
        "i": "int",
        "n": "long",
        "f": "float",
        "d": "double",
        "s": "string",
        "u": "string",
        "b": "bytes",
        "da": logical("int", "date"),
        "ti": logical("long", "time-micros"),
        "ts": logical("long", "timestamp-micros"),
        "z": logical("long", "timestamp-micros"),
        "de": logical("bytes", "decimal", precision=10, scale=2),
        "h": logical("bytes", "decimal", precision=20, scale=0),
        "l": {"type": "array", "items": ["null", "long"]},
        "st": {
            "type": "record",
            "name": "Value_st",
            "fields": [
                {"name": "x", "type": ["null", "long"], "default": None},
                {
                    "name": "y",
                    "type": ["null", {"type": "array", "items": ["null", "string"]}],
                    "default": None,
                },
            ],
        },
        "m": {"type": "map", "values": ["null", logical("bytes", "decimal", precision=5, scale=1)]},
    }


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Column("a b", "BIGINT"), "'a b' cannot be a field"),
        (Column("a", "INTERVAL"), "no type for INTERVAL"),
        (Column("a", "MAP(BIGINT, BIGINT)"), "no type for MAP"),
    ],
)
def test_refuses_what_avro_does_not_have(column, message):
    with pytest.raises(ModelError, match=message):
        avro_schema([column])


def test_a_schema_that_is_no_record_is_refused():
    with pytest.raises(ModelError, match="not a record"):
        columns_of('"string"')
    with pytest.raises(ModelError, match="not an Avro schema"):
        columns_of('{"type": "nope"}')


def test_writes_into_a_given_schema():
    schema = record(
        e={"type": "enum", "name": "E", "symbols": ["A", "B"]},
        i="int",
        l="long",
        ts=logical("long", "timestamp-millis"),
        x="double",
    )
    table = pa.table(
        {
            "e": ["A", "C", None, "B"],
            "i": pa.array([1, 2, 3, 2**40]),
            "l": pa.array([1, 2, 3, 4], pa.int32()),
            "ts": pa.array([1500, 2, 3, 4], pa.timestamp("us")),
            "x": [1, 2, 3, 4],
        }
    )
    found = AvroEncoder(json.dumps(schema), 1).encode(table)
    row = {"e": "A", "i": 1, "l": 1, "ts": dt.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC), "x": 1.0}
    assert found.values == [frame(schema, row), None, None, None]
    assert [(bad.row, bad.message) for bad in found.bad] == [
        (1, "column 'e' is none of A, B"),
        (2, "column 'e' is NULL, the schema does not allow it"),
        (3, "column 'i' is beyond the range of int"),
    ]


def test_falls_back_for_unions_and_defaults():
    schema = record(a=["null", "string", "long"])
    schema["fields"].append({"name": "q", "type": "int", "default": 5})
    found = AvroEncoder(json.dumps(schema), 1).encode(pa.table({"a": [1, None]}))
    assert found.values == [frame(schema, {"a": 1, "q": 5}), frame(schema, {"a": None, "q": 5})]


TEXT = st.text(max_size=8)
ROWS = st.fixed_dictionaries(
    {
        "bo": st.booleans() | st.none(),
        "i": st.integers(-(2**31), 2**31 - 1) | st.none(),
        "n": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "f": st.floats(width=32, allow_nan=False) | st.none(),
        "d": st.floats(allow_nan=False) | st.none(),
        "s": TEXT | st.none(),
        "b": st.binary(max_size=8) | st.none(),
        "da": st.dates() | st.none(),
        "ti": st.times() | st.none(),
        "ts": st.datetimes() | st.none(),
        "de": st.decimals(-(10**7), 10**7, places=2) | st.none(),
        "l": st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=4) | st.none(),
        "st": st.fixed_dictionaries(
            {"x": st.integers(-9, 9) | st.none(), "y": st.lists(TEXT, max_size=2) | st.none()}
        )
        | st.none(),
        "m": st.dictionaries(TEXT, st.decimals(-999, 999, places=1) | st.none(), max_size=2)
        | st.none(),
    }
)


@pytest.mark.property
@given(st.lists(ROWS, max_size=8))
@settings(max_examples=100, deadline=None)
def test_writes_and_reads_as_fastavro_does(rows):
    schema = avro_schema(COLUMNS)
    arrow = [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in rows]
    table = pa.Table.from_pylist(arrow, schema_of(COLUMNS))
    encoded = AvroEncoder(schema, 258).encode(table)
    assert encoded.bad == ()
    parsed = fastavro.parse_schema(json.loads(schema))
    aware = [{**row, "ts": row["ts"].replace(tzinfo=UTC) if row["ts"] else None} for row in rows]
    theirs = []
    for value in encoded.values:
        stream = io.BytesIO(value[5:])
        theirs.append(fastavro.schemaless_reader(stream, parsed, None))
        assert stream.read() == b""
    assert theirs == aware
    found = decode_avro(encoded.array, COLUMNS, lambda _: schema)
    assert found.bad == ()
    assert found.table.to_pylist() == table.to_pylist()
    framed = pa.array([frame(parsed, row) for row in aware], pa.binary())
    assert decode_avro(framed, COLUMNS, lambda _: schema).table.to_pylist() == table.to_pylist()


@pytest.mark.property
@given(st.lists(ROWS, min_size=2, max_size=4), st.data())
@settings(max_examples=100, deadline=None)
def test_damaged_records_disturb_no_others(rows, data):
    schema = avro_schema(COLUMNS)
    arrow = [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in rows]
    table = pa.Table.from_pylist(arrow, schema_of(COLUMNS))
    values = AvroEncoder(schema, 1).encode(table).values
    at = data.draw(st.integers(0, len(values) - 1))
    damaged = bytearray(values[at])
    byte = data.draw(st.integers(5, len(damaged) - 1))
    damaged[byte] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(5, len(damaged)))
    values[at] = bytes(damaged[:cut])
    found = decode_avro(pa.array(values, pa.binary()), COLUMNS, lambda _: schema)
    others = [row for row in range(len(values)) if row != at]
    kept = {
        row: value
        for row, value in zip(found.good.to_pylist(), found.table.to_pylist(), strict=True)
    }
    assert [kept[row] for row in others] == [table.to_pylist()[row] for row in others]
    assert {bad.row for bad in found.bad} <= {at}
