"""Columns to Avro records, always beside fastavro."""

import datetime as dt
import io
import json

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.avro.decode import decode_avro
from kaflow_engine.formats.avro.encode import AvroEncoder
from kaflow_engine.formats.avro.schema import avro_schema, columns_of
from kaflow_engine.formats.decoded import schema_of
from kaflow_engine.model.columns import Column
from tests.engine.formats.avro_here import COLUMNS, UTC, frame, logical, record


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


@pytest.mark.slow
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


@pytest.mark.slow
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
