"""Lines of CSV to columns, and back."""

import csv

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaflow_engine.duck import queries
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.formats.csv.encode import csv_line_sql
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.model.columns import Column

CSV = format_of("csv")
TWO = (Column("a", "VARCHAR"), Column("b", "VARCHAR"))

GOOD = [
    (b"x,y", ["x", "y"]),
    (b",", [None, None]),
    (b'"",""', ["", ""]),
    (b'"a,b","say ""hi"""', ["a,b", 'say "hi"']),
    (b'"two\r\nlines",', ["two\r\nlines", None]),
    (b" x , y ", [" x ", " y "]),
    ("é,ü\n".encode(), ["é", "ü"]),
    (b"x,y\r\n", ["x", "y"]),
    (b'x,"y"\n', ["x", "y"]),
    (b"x,'y'", ["x", "'y'"]),
]

BAD = [
    (b"x", "InvalidCsv", "the line has 1 field, and 2 are declared"),
    (b"x,y,z", "InvalidCsv", "the line has 3 fields, and 2 are declared"),
    (b'"x","y","z"', "InvalidCsv", "the line has 3 fields, and 2 are declared"),
    (b"", "InvalidCsv", "the line has 1 field, and 2 are declared"),
    (b"x,y\nx,y", "InvalidCsv", r"the value is not a line of CSV: x,y\nx,y"),
    (b"x,y\n\n", "InvalidCsv", r"the value is not a line of CSV: x,y\n"),
    (b'"x,y', "InvalidCsv", 'the value is not a line of CSV: "x,y'),
    (b'"x"z,y', "InvalidCsv", 'the value is not a line of CSV: "x"z,y'),
    (b'x"z,y', "InvalidCsv", 'the value is not a line of CSV: x"z,y'),
    (b"\xff,y", "NotUtf8", "the value is not UTF-8: byte 0xff at 0"),
]


def decode(values, *columns):
    return CSV.decode(pa.array(values, pa.binary()), columns, no_schema)


@pytest.mark.parametrize(("line", "expected"), GOOD)
def test_reads(line, expected):
    found = decode([line], *TWO)
    assert found.bad == ()
    assert [list(row.values()) for row in found.table.to_pylist()] == [expected]


@pytest.mark.parametrize(("line", "error", "message"), BAD)
def test_refuses(line, error, message):
    found = decode([b"1,2", line, b'"3",4'], *TWO)
    assert found.good.to_pylist() == [0, 2]
    assert found.table.column("a").to_pylist() == ["1", "3"]
    assert [(bad.row, bad.error, bad.message) for bad in found.bad] == [(1, error, message)]


TYPES = [
    ("BIGINT", ["1", "-9223372036854775808", "1.5", "x", "1e3", " 7", "", "+1", "1_000", "0x1"]),
    ("UTINYINT", ["255", "256", "-1"]),
    ("DOUBLE", ["0.1", "-1e300", "nan", "inf", ".5", "1.", "12345678901234567.1"]),
    ("DECIMAL(5,2)", ["1.10", "1.005", "1000", "-999.99", "1e2", "."]),
    ("BOOLEAN", ["true", "false", "TRUE", "t", "1"]),
    ("DATE", ["2026-02-28", "2026-02-30", "2026-1-1", "epoch", "0000-01-01"]),
    ("TIME", ["01:02:03", "23:59:59.999999", "24:00:00", "1:2", "24:00"]),
    ("TIMESTAMP", ["2026-01-01T01:02:03.5Z", "2026-01-01 01:02:03", "2026-01-01T01:02:03+02:00"]),
    ("TIMESTAMP", ["2026-13-01T00:00:00Z", "now", "2026-01-01", "2026-01-01T24:00:00"]),
    ("BLOB", ["aGk=", "a!"]),
    ("UUID", ["00000000-0000-0000-0000-000000000001", "x"]),
    ("ENUM('a', 'b')", ["a", "c"]),
]


@pytest.mark.parametrize(("kind", "texts"), TYPES)
def test_a_field_is_read_as_json_reads_a_string(kind, texts):
    column = Column("c", kind)
    lines = [f'"{text}"' if text == "" else text for text in texts]
    found = decode([line.encode() for line in lines], column)
    objects = [f'{{"c":"{text}"}}'.encode() for text in texts]
    expected = decode_json(pa.array(objects, pa.binary()), [column])
    assert found.table.to_pylist() == expected.table.to_pylist()
    assert found.good.to_pylist() == expected.good.to_pylist()
    assert found.bad == expected.bad


WRITTEN = [
    ("VARCHAR", "NULL", ""),
    ("VARCHAR", "''", '""'),
    ("VARCHAR", "'a b'", "a b"),
    ("VARCHAR", "'a,b'", '"a,b"'),
    ("VARCHAR", "'say \"hi\"'", '"say ""hi"""'),
    ("VARCHAR", "'x' || chr(10) || 'y'", '"x\ny"'),
    ("BIGINT", "-9223372036854775808", "-9223372036854775808"),
    ("HUGEINT", "170141183460469231731687303715884105727", str(2**127 - 1)),
    ("DECIMAL(5,2)", "1.10", "1.10"),
    ("DECIMAL(3,3)", "-0.5", "-0.500"),
    ("DOUBLE", "0.1", "0.1"),
    ("DOUBLE", "'nan'", ""),
    ("BOOLEAN", "true", "true"),
    ("TIMESTAMP", "'2026-01-01 01:02:03.5'", "2026-01-01T01:02:03.5Z"),
    ("TIMESTAMPTZ", "'2026-01-01 01:02:03+02'", "2025-12-31T23:02:03Z"),
    ("DATE", "'2026-01-01'", "2026-01-01"),
    ("TIME", "'01:02:03'", "01:02:03"),
    ("BLOB", "'hi'", "aGk="),
    ("ENUM('a,b')", "'a,b'", '"a,b"'),
    ("INTERVAL", "'1 day'", "1 day"),
]


@pytest.mark.parametrize(("kind", "sql", "expected"), WRITTEN)
def test_writes(kind, sql, expected):
    column = Column("c", kind)
    line = queries.value(f"SELECT {csv_line_sql([(column, f'CAST({sql} AS {kind})')])}")
    assert line == expected


@pytest.mark.slow
@given(st.lists(st.tuples(st.text() | st.none(), st.text() | st.none()), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_what_is_written_reads_back_here_and_elsewhere(rows):
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]}, COLUMN_TYPES)
    lines = CSV.encoder(TWO, None).encode(table).values
    found = decode(lines, *TWO)
    assert found.bad == ()
    assert [tuple(row.values()) for row in found.table.to_pylist()] == rows
    for line, row in zip(lines, rows, strict=True):
        (elsewhere,) = csv.reader([line.decode()]) if "\0" not in line.decode() else [row]
        assert [cell or None for cell in elsewhere] == [cell or None for cell in row]


COLUMN_TYPES = pa.schema([("a", pa.string()), ("b", pa.string())])
