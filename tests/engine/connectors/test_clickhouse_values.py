"""Values of every type in ClickHouse, over its engine, and those that it would change."""
# pyright: basic

import pytest

from kaflow_engine.connectors.clickhouse.types import unfit
from kaflow_engine.duck.queries import value
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.row_text import to_text
from tests.engine.connectors.clickhouse_here import Table
from tests.engine.connectors.typed_output_here import traveling

pytestmark = pytest.mark.services

VALUES = [
    ("BOOLEAN", "true", "true"),
    ("TINYINT", "-128", "-128"),
    ("UINTEGER", "4294967295", "4294967295"),
    ("BIGINT", "-9223372036854775808", "-9223372036854775808"),
    ("UBIGINT", "18446744073709551615", "18446744073709551615"),
    ("HUGEINT", "170141183460469231731687303715884105727", None),
    ("DECIMAL(9,2)", "-1234567.89", "-1234567.89"),
    ("DECIMAL(38,10)", "1234567890123456789012345678.0123456789", None),
    ("FLOAT", "0.1", "0.1"),
    ("DOUBLE", "1.7976931348623157e+308", "1.7976931348623157e308"),
    ("DOUBLE", "-inf", "-inf"),
    ("VARCHAR", "tab\t line\n back\\slash \\N é 😀 ''\"`", None),
    ("VARCHAR", "", ""),
    ("VARCHAR", "nul\x00", None),
    ("DATE", "1900-01-01", "1900-01-01"),
    ("TIMESTAMP", "2299-12-31 23:59:59.999999", "2299-12-31 23:59:59.999999"),
    ("TIMESTAMP_MS", "2026-02-28 23:59:59.123", "2026-02-28 23:59:59.123000"),
    ("TIMESTAMP_NS", "2026-02-28 23:59:59.123456789", "2026-02-28 23:59:59.123456789"),
    ("TIMESTAMP WITH TIME ZONE", "2026-01-02 03:04:05+02", "2026-01-02 01:04:05.000000"),
    ("UUID", "00112233-4455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"),
    ("JSON", '{"a": [1, "x\\n"]}', None),
    ("ENUM('a', 'b')", "b", "b"),
]
NESTED = [
    ("INTEGER[]", "[1, NULL, 3]", "[1,NULL,3]"),
    ("VARCHAR[][]", "[['a'], []]", "[['a'],[]]"),
    ("HUGEINT[]", "[170141183460469231731687303715884105727]", None),
    ("MAP(VARCHAR, DECIMAL(9,2))", "MAP {'a': 1.50, 'b': NULL}", "{'a':1.5,'b':NULL}"),
    ('STRUCT(a INTEGER, "b c" VARCHAR[])', "{'a': 1, 'b c': ['x']}", "(1,['x'])"),
]


def text_of(kind, sql):
    """Return the text with which a value travels."""
    return value(f"SELECT {to_text(f'CAST({sql} AS {kind})', kind)}")


@pytest.mark.parametrize(
    ("kind", "text", "found"), VALUES, ids=[f"{v[0]} {v[1][:9]!r}" for v in VALUES]
)
def test_a_value_of_every_type(clickhouse, unique, kind, text, found):
    table = Table(clickhouse, unique, (Column("v", kind), Column("w", kind)))
    table.begin()
    assert table.write(1, ("k", [text, None])).refused == ()
    assert table.rows("toString(v), w") == [(text if found is None else found, None)]
    assert table.read_back() == [(traveling(kind, text), None)]


@pytest.mark.parametrize(("kind", "sql", "found"), NESTED, ids=[each[0] for each in NESTED])
def test_lists_maps_and_structs(clickhouse, unique, kind, sql, found):
    table = Table(clickhouse, unique, (Column("v", kind),))
    table.begin()
    assert table.write(1, ("k", [text_of(kind, sql)])).refused == ()
    assert table.rows("toString(v)") == [(sql if found is None else found,)]
    assert table.read_back() == [(text_of(kind, sql),)]


def test_bytes_stay_what_they_are(clickhouse, unique):
    table = Table(clickhouse, unique, (Column("v", "BLOB"),))
    table.begin()
    table.write(1, ("k", ["AAEC/w=="]))
    assert table.rows("hex(v)") == [("000102FF",)]
    assert table.read_back() == [("AAEC/w==",)]


def test_columns_that_have_no_type():
    kinds = {"a": "TIME", "b": "UHUGEINT", "c": "INTERVAL[]", "d": "MAP(INTEGER[], INTEGER)"}
    columns = [Column(name, kind) for name, kind in kinds.items()]
    found = [each.hint for each in unfit([*columns, Column("_version", "BIGINT")], {})]
    assert found == [
        *(f"write CAST({name} AS VARCHAR) AS {name}" for name in kinds),
        "select it under another name",
    ]


LOST = [
    ("DATE", "DATE '1899-12-31'", "a time before 1900"),
    ("TIMESTAMP", "'2300-01-01 00:00:00'", "a time before 1900 or after 2299"),
    ("TIMESTAMP", "'infinity'", "a time before 1900"),
    ("TIMESTAMP WITH TIME ZONE", "'1900-01-01 00:00:00+01'", "a time before 1900"),
    ("INTEGER[]", "NULL", "a list, map or struct that is NULL"),
    ("INTEGER[][]", "[[1], NULL]", "a list, map or struct that is NULL"),
    ("STRUCT(a DATE)", "{'a': DATE '1800-01-01'}", "a time out of 1900 to 2299"),
    ("MAP(VARCHAR, STRUCT(a INTEGER))", "MAP {'x': NULL}", "a list, map or struct that is NULL"),
]


@pytest.mark.parametrize(("kind", "sql", "why"), LOST, ids=[f"{e[0]} {e[1]}" for e in LOST])
def test_a_value_that_would_become_another_one(clickhouse, unique, kind, sql, why):
    table = Table(clickhouse, unique, (Column("n", "INTEGER"), Column("v", kind)))
    table.begin()
    (refused,) = table.write(1, ("k", ["1", text_of(kind, sql)])).refused
    assert refused.error == "ValueNotKept"
    assert why in refused.message
    assert table.rows("n") == []
