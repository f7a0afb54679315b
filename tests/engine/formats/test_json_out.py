"""Columns to JSON."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaflow_engine.duck import queries
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.json.encode import json_object_sql, spaced_object_sql
from kaflow_engine.model.columns import Column

WRITTEN = [
    ("BIGINT", "9223372036854775807", "9223372036854775807"),
    (
        "HUGEINT",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105727",
    ),
    ("DECIMAL(5,2)", "1.10", "1.10"),
    ("DECIMAL(3,3)", "-0.5", "-0.500"),
    ("DOUBLE", "0.1", "0.1"),
    ("DOUBLE", "'nan'", "null"),
    ("DOUBLE", "'-inf'", "null"),
    ("FLOAT", "0.1", "0.1"),
    ("BOOLEAN", "true", "true"),
    ("VARCHAR", "'a\"\\é' || chr(0) || chr(10)", r'"a\"\\é\u0000\n"'),
    ("VARCHAR", "NULL", "null"),
    ("TIMESTAMP", "'2026-01-01 01:02:03'", '"2026-01-01T01:02:03Z"'),
    ("TIMESTAMP", "'2026-01-01 01:02:03.5'", '"2026-01-01T01:02:03.5Z"'),
    ("TIMESTAMP", "'infinity'", "null"),
    ("TIMESTAMPTZ", "'2026-01-01 01:02:03+02'", '"2025-12-31T23:02:03Z"'),
    ("TIMESTAMP_MS", "'2026-01-01 01:02:03.25'", '"2026-01-01T01:02:03.25Z"'),
    ("DATE", "'2026-01-01'", '"2026-01-01"'),
    ("TIME", "'01:02:03'", '"01:02:03"'),
    ("UUID", "'00000000-0000-0000-0000-000000000001'", '"00000000-0000-0000-0000-000000000001"'),
    ("BLOB", "'hi'", '"aGk="'),
    ("JSON", "'{\"q\":[1]}'", '{"q":[1]}'),
    ("INTERVAL", "'1 day'", '"1 day"'),
    ("BIGINT[]", "[1, NULL]", "[1,null]"),
    ("BIGINT[]", "[]", "[]"),
    ("BIGINT[]", "NULL", "null"),
    ("DOUBLE[][]", "[[1.5, 'nan'::DOUBLE], NULL]", "[[1.5,null],null]"),
    ('STRUCT(x BIGINT, "y z" DATE[])', "{'x': 1, 'y z': NULL}", '{"x":1,"y z":null}'),
    ("STRUCT(x BIGINT)", "NULL", "null"),
    ("MAP(VARCHAR, DECIMAL(4,2))", "map{'a\"': 1.5, 'b': NULL}", r'{"a\"":1.50,"b":null}'),
    ("MAP(BIGINT, STRUCT(a BIGINT))", "map{1: {'a': 1}}", '{"1":{"a":1}}'),
]


def write(*cells):
    pairs = [(Column(name, kind), f"CAST({sql} AS {kind})") for name, kind, sql in cells]
    return queries.value(f"SELECT {json_object_sql(pairs)}")


@pytest.mark.parametrize(("type_", "sql", "expected"), WRITTEN)
def test_writes(type_, sql, expected):
    text = write(("c", type_, sql))
    assert text == f'{{"c":{expected}}}'
    json.loads(text)


@pytest.mark.parametrize(("type_", "sql", "expected"), WRITTEN)
def test_writes_the_same_with_spaces(type_, sql, expected):
    pairs = [(Column(name, type_), f"CAST({sql} AS {type_})") for name in ("a b", "c")]
    text = queries.value(f"SELECT {spaced_object_sql(pairs)}")
    assert json.loads(text) == {"a b": json.loads(expected), "c": json.loads(expected)}
    if type_ != "JSON" and "\\" not in expected and "." not in expected:
        assert text == json.dumps(json.loads(text), ensure_ascii=False)


def test_fields_stand_in_query_order_without_spaces():
    assert write(("b", "BIGINT", "1"), ('a"', "VARCHAR", "'x'")) == r'{"b":1,"a\"":"x"}'


def test_a_row_without_columns():
    assert write() == "{}"


@pytest.mark.slow
@given(
    st.text(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.decimals(-(10**16), 10**16, places=3),
    st.datetimes(),
    st.lists(st.binary(max_size=5) | st.none(), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_what_is_written_reads_back(text, whole, double, exact, at, blobs):
    types = ["VARCHAR", "BIGINT", "DOUBLE", "DECIMAL(20,3)", "TIMESTAMP", "BLOB[]"]
    columns = [Column(name, kind) for name, kind in zip("abcdef", types, strict=True)]
    sql = json_object_sql([(c, f"CAST(?{i} AS {c.type})") for i, c in enumerate(columns, 1)])
    row = [text, whole, double, exact, at, blobs]
    written = queries.value(f"SELECT encode({sql})", row)
    found = decode_json(_binary(written), columns)
    assert found.bad == ()
    expected = [text, whole, double if math.isfinite(double) else None, exact, at, blobs]
    assert list(found.table.to_pylist()[0].values()) == expected


def _binary(value):
    import pyarrow as pa

    return pa.array([value], pa.binary())
