"""JSON to columns."""

import base64
import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaflow_engine.formats.decoded import Unreadable
from kaflow_engine.formats.json import decode as json_in
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.json.reference import read_object
from kaflow_engine.model.columns import Column


@pytest.fixture(autouse=True)
def all_lanes(monkeypatch):
    """A few texts would not be worth the closer lanes; here those are what is tested."""
    monkeypatch.setattr(json_in, "FEW", 0)


HUGE = "12345678901234567890.123456789012345678"

GOOD = [
    ("BIGINT", "1", 1),
    ("BIGINT", '"12"', 12),
    ("BIGINT", "1e3", 1000),
    ("BIGINT", "1.0", 1),
    ("BIGINT", "-0", 0),
    ("BIGINT", "9223372036854775807", 2**63 - 1),
    ("BIGINT", "null", None),
    ("VARCHAR", "null", None),
    ("DECIMAL(10,2)", "null", None),
    ("UBIGINT", "18446744073709551615", 2**64 - 1),
    ("HUGEINT", "1" * 38, Decimal("1" * 38)),
    ("VARCHAR", "1.50", "1.50"),
    ("VARCHAR", "12345678901.12345678", "12345678901.12345678"),
    ("VARCHAR", HUGE, HUGE),
    ("VARCHAR", "true", "true"),
    ("VARCHAR", '{"x": [1.50, "a"]}', '{"x":[1.50,"a"]}'),
    ("VARCHAR", r'"x\u0000y\ud83d\ude00"', "x\0y😀"),
    ("VARCHAR", '"1.50"', "1.50"),
    ("VARCHAR", '"nan"', "nan"),
    ("DOUBLE", "0", 0.0),
    ("DOUBLE", '"1.5"', 1.5),
    ("DOUBLE", "5e-324", 5e-324),
    ("FLOAT", "1.5", 1.5),
    ("BOOLEAN", "true", True),
    ("BOOLEAN", '"false"', False),
    ("DECIMAL(38,18)", HUGE, Decimal(HUGE)),
    ("DECIMAL(38,18)", f'"{HUGE}"', Decimal(HUGE)),
    ("DECIMAL(10,2)", "1.005", Decimal("1.01")),
    ("DECIMAL(20,19)", "0.1000000000000000055", Decimal("0.1000000000000000055")),
    ("TIMESTAMP", '"2026-01-01T01:02:03.5Z"', dt.datetime(2026, 1, 1, 1, 2, 3, 500000)),
    ("TIMESTAMP", '"2026-01-01 01:02:03"', dt.datetime(2026, 1, 1, 1, 2, 3)),
    ("TIMESTAMP", '"2026-01-01T01:02:03+02:00"', dt.datetime(2025, 12, 31, 23, 2, 3)),
    ("TIMESTAMP", '"2026-01-01"', dt.datetime(2026, 1, 1)),
    ("TIMESTAMPTZ", '"2026-01-01T01:02:03Z"', dt.datetime(2026, 1, 1, 1, 2, 3, tzinfo=dt.UTC)),
    ("DATE", '"2026-01-01"', dt.date(2026, 1, 1)),
    ("TIME", '"01:02:03.5"', dt.time(1, 2, 3, 500000)),
    ("BLOB", '"aGk="', b"hi"),
    ("UUID", '"00000000-0000-0000-0000-000000000001"', "00000000-0000-0000-0000-000000000001"),
    ("BIGINT[]", '[1, null, "3"]', [1, None, 3]),
    ("DECIMAL(20,18)[]", "[1.123456789012345678]", [Decimal("1.123456789012345678")]),
    ("STRUCT(a BIGINT, b VARCHAR[])", '{"a":1,"b":["x"]}', {"a": 1, "b": ["x"]}),
    ("STRUCT(a BIGINT)", "{}", {"a": None}),
    ("STRUCT(a BIGINT)[]", '[{"a":1},{}]', [{"a": 1}, {"a": None}]),
    ("MAP(VARCHAR, BIGINT)", '{"a":1,"b":null}', [("a", 1), ("b", None)]),
    ("JSON", '{"a":[1.50]}', '{"a":[1.50]}'),
    ("ENUM('a', 'b')", '"a"', "a"),
]

WRONG = [
    ("BIGINT", '"abc"'),
    ("BIGINT", "1.7"),
    ("BIGINT", "9223372036854775808"),
    ("BIGINT", '{"x":1}'),
    ("BIGINT", "true"),
    ("DOUBLE", "true"),
    ("DOUBLE", "1e400"),
    ("FLOAT", "1e39"),
    ("BOOLEAN", "1"),
    ("DECIMAL(4,2)", "100"),
    ("DECIMAL(4,2)", "true"),
    ("TIMESTAMP", '"infinity"'),
    ("TIMESTAMP", "1700000000000"),
    ("TIMESTAMP", '"2026-13-01T00:00:00Z"'),
    ("DATE", '"2026-01-01T01:02:03"'),
    ("BLOB", "1234"),
    ("BLOB", '"a!"'),
    ("UUID", '"x"'),
    ("BIGINT[]", "5"),
    ("BIGINT[]", "[1, 1.5]"),
    ("STRUCT(a BIGINT)", "[1]"),
    ("STRUCT(a BIGINT)", '{"a":"x"}'),
    ("MAP(VARCHAR, BIGINT)", '{"a":"x"}'),
    ("ENUM('a', 'b')", '"c"'),
]

NOT_OBJECTS = [
    (b"", "InvalidJson"),
    (b"nope", "InvalidJson"),
    (b'{"a":1', "InvalidJson"),
    (b'{"a":1} {"a":2}', "InvalidJson"),
    (rb'{"s":"\ud83d"}', "InvalidJson"),
    (b'{"a":NaN}', "InvalidJson"),
    (b"\xef\xbb\xbf{}", "InvalidJson"),
    (b'{"a":' * 100_000, "InvalidJson"),
    (b"\xff", "NotUtf8"),
    (b"[1]", "NotAnObject"),
    (b"5", "NotAnObject"),
    (b"null", "NotAnObject"),
]


def decode(values, *columns):
    return decode_json(pa.array(values, pa.binary()), columns)


@pytest.mark.parametrize(("type_", "text", "expected"), GOOD)
def test_reads(type_, text, expected):
    found = decode([f'{{"c":{text}}}'.encode()], Column("c", type_))
    assert found.bad == ()
    assert found.table.column("c").to_pylist() == [expected]


@pytest.mark.parametrize(("type_", "text"), WRONG)
def test_refuses(type_, text):
    found = decode([b"{}", f'{{"c":{text}}}'.encode(), b"{}"], Column("c", type_))
    assert found.good.to_pylist() == [0, 2]
    (bad,) = found.bad
    assert (bad.row, bad.error) == (1, "WrongType")
    assert bad.message.startswith("column 'c")


@pytest.mark.parametrize(("value", "error"), NOT_OBJECTS)
def test_refuses_what_is_no_object(value, error):
    found = decode([b'{"a":1}', value, b'{"a":2}'], Column("a", "BIGINT"))
    assert found.table.to_pylist() == [{"a": 1}, {"a": 2}]
    assert found.good.to_pylist() == [0, 2]
    assert [(bad.row, bad.error) for bad in found.bad] == [(1, error)]


def test_finds_fields_by_their_exact_name():
    names = ['a"b', "a/b", "c~d", "0", "É", "e f", "A"]
    columns = [Column(name, "BIGINT") for name in names]
    value = json.dumps({name: index for index, name in enumerate(names)} | {"a": 9, "z": {}})
    found = decode([value.encode(), b'{"x":1}'], *columns)
    assert [list(row.values()) for row in found.table.to_pylist()] == [
        list(range(len(names))),
        [None] * len(names),
    ]


def test_the_first_of_repeated_fields_counts():
    values = [b'{"a":1,"a":2}', b'{"a":1.0,"a":2}']
    assert decode(values, Column("a", "BIGINT")).table.to_pylist() == [{"a": 1}, {"a": 1}]


def test_without_columns_values_are_still_checked():
    found = decode([b"{}", b"nope", b"[]", b'{"a":1}'])
    assert (found.good.to_pylist(), len(found.bad), found.table.num_rows) == ([0, 3], 2, 2)


def test_no_values():
    found = decode([], Column("a", "BIGINT"))
    assert (found.table.num_rows, found.table.schema.field("a").type) == (0, pa.int64())


def test_deep_nesting_elsewhere_does_no_harm():
    value = b'{"q":' + b'{"q":' * 3000 + b"1" + b"}" * 3001
    assert decode([value], Column("a", "BIGINT")).table.to_pylist() == [{"a": None}]


TYPES = ["BIGINT", "VARCHAR", "DOUBLE", "DECIMAL(20,4)", "BOOLEAN", "BIGINT[]", "DATE", "TIMESTAMP"]
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["1", "-1.5", "1e3", "2026-01-01", "2026-01-01T00:00:00Z", "true", "nan", ""]),
)
NUMBERS = st.one_of(
    st.integers(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 1.5, 2**53, 10**17 + 1]),
)
VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.sampled_from("abcdefgh"), VALUES), max_size=6))
@settings(max_examples=60, deadline=None)
def test_bulk_and_one_by_one_agree(objects):
    columns = tuple(Column(name, kind) for name, kind in zip("abcdefgh", TYPES, strict=True))
    texts = [json.dumps(each) for each in objects]
    found = decode([text.encode() for text in texts], *columns)
    rows, bad = [], []
    for row, text in enumerate(texts):
        try:
            rows.append(read_object(text, columns))
        except Unreadable:
            bad.append(row)
    assert [one.row for one in found.bad] == bad
    assert [list(row.values()) for row in found.table.to_pylist()] == rows


@pytest.mark.slow
@given(st.binary(max_size=30), st.text(max_size=10))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_good_or_bad(noise, text):
    values = [noise, json.dumps({"a": text}).encode(), base64.b64encode(noise)]
    found = decode(values, Column("a", "VARCHAR"), Column("b", "DECIMAL(10,2)"))
    assert len(found.bad) + len(found.good) == 3
