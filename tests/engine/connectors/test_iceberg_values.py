"""Values of every type in Iceberg tables, and those that the library would change."""
# pyright: basic

import datetime as dt
import decimal
import uuid

import pytest

from kaflow_engine.connectors.iceberg.types import unfit
from kaflow_engine.duck.queries import value
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.row_text import to_text
from tests.engine.connectors.iceberg_here import Table, catalog_in

pytestmark = pytest.mark.slow

VALUES = [
    ("BOOLEAN", "true", "boolean", True),
    ("TINYINT", "-128", "int", -128),
    ("USMALLINT", "65535", "int", 65535),
    ("UINTEGER", "4294967295", "long", 2**32 - 1),
    ("UBIGINT", "18446744073709551615", "decimal(20, 0)", decimal.Decimal(2**64 - 1)),
    ("DECIMAL(9,2)", "-1234567.89", "decimal(9, 2)", decimal.Decimal("-1234567.89")),
    ("FLOAT", "0.5", "float", 0.5),
    ("DOUBLE", "1.7976931348623157e308", "double", 1.7976931348623157e308),
    ("VARCHAR", "'nul' || chr(0) || ' é 😀'", "string", "nul\x00 é 😀"),
    ("ENUM('a', 'b')", "'b'", "string", "b"),
    ("JSON", "'{\"a\": 1}'", "string", '{"a": 1}'),
    ("BLOB", "'\\x00\\xFF'::BLOB", "binary", b"\x00\xff"),
    ("DATE", "DATE '2026-02-28'", "date", dt.date(2026, 2, 28)),
    ("TIME", "TIME '23:59:59.5'", "time", dt.time(23, 59, 59, 500000)),
    ("TIMESTAMP", "'0044-03-15 12:00:00.000001'", "timestamp", dt.datetime(44, 3, 15, 12, 0, 0, 1)),
    ("TIMESTAMP_MS", "'2026-02-28 01:02:03'", "timestamp", dt.datetime(2026, 2, 28, 1, 2, 3)),
    (
        "TIMESTAMP WITH TIME ZONE",
        "'2026-01-02 03:04:05+02'",
        "timestamptz",
        dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=dt.UTC),
    ),
    ("UUID", f"'{uuid.UUID(int=7)}'", "uuid", uuid.UUID(int=7)),
    ("INTEGER[]", "[1, NULL]", "list<int>", [1, None]),
    ("MAP(VARCHAR, UTINYINT)", "MAP {'a': 1}", "map<string, int>", [("a", 1)]),
    ("STRUCT(a UBIGINT[], \"b c\" DATE)", "{'a': [1], 'b c': NULL}", None, {"a": [1], "b c": None}),
]  # fmt: skip


def text_of(kind, sql):
    """Return the text with which a value travels."""
    return value(f"SELECT {to_text(f'CAST({sql} AS {kind})', kind)}")


@pytest.fixture
def catalog(tmp_path):
    return catalog_in(tmp_path)


@pytest.mark.parametrize(("kind", "sql", "name", "found"), VALUES, ids=[e[0] for e in VALUES])
def test_a_value_of_every_type(catalog, kind, sql, name, found):
    table = Table(catalog, (Column("v", kind), Column("w", kind)))
    table.write(table.begin(), 1, ("k", [text_of(kind, sql), None]))
    assert table.rows() == [(found, None)]
    assert table.read_back() == [(text_of(kind, sql), None)]
    with table.loaded() as there:
        assert name is None or str(there.schema().find_type("v")) == name
    table.begin()  # what it has created fits


def test_columns_that_have_no_type():
    kinds = {"a": "HUGEINT", "b": "TIMESTAMP_NS", "c": "INTERVAL", "d": "UUID[]"}
    assert [each.hint for each in unfit([Column(name, kind) for name, kind in kinds.items()])] == [
        "write CAST(a AS DECIMAL(38, 0)) AS a",
        "write CAST(b AS TIMESTAMP) AS b",
        "write CAST(c AS VARCHAR) AS c",
        "write CAST(d AS VARCHAR) AS d",
    ]


LOST = [
    ("TIMESTAMP", "'infinity'"),
    ("DATE[]", "['-infinity']"),
    ("STRUCT(a INTEGER)[]", "NULL"),
    ("STRUCT(b MAP(VARCHAR, STRUCT(a INTEGER)))[]", "[{'b': NULL}]"),
]


@pytest.mark.parametrize(("kind", "sql"), LOST, ids=[each[0] for each in LOST])
def test_a_value_that_would_become_another_one(catalog, kind, sql):
    table = Table(catalog, (Column("n", "INTEGER"), Column("v", kind)))
    sink = table.begin()
    written = table.write(sink, 1, ("k", ["1", text_of(kind, sql)]))
    assert [(one.row, one.error) for one in written.refused] == [(0, "ValueNotKept")]
    assert "column 'v' is, or holds, a time without end" in written.refused[0].message
    assert written.rows == {table.output.name: 0}
    assert table.rows() == []
