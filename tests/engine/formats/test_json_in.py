"""JSON to columns."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from kaflow_engine.formats.json import decode as json_in
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.model.columns import Column


@pytest.fixture(autouse=True, params=[0, 1000], ids=["in bulk", "one by one"])
def few(monkeypatch, request):
    """A few texts would not be worth a lane; here those are tested too."""
    monkeypatch.setattr(json_in, "FEW", request.param)


HUGE = "12345678901234567890.123456789012345678"

GOOD = [
    ("BIGINT", "1", 1),
    ("BIGINT", '"12"', 12),
    ("BIGINT", "1e3", 1000),
    ("BIGINT", "1.0", 1),
    ("BIGINT", "-0", 0),
    ("BIGINT", "9223372036854775807", 2**63 - 1),
    ("BIGINT", '"1_0"', 10),
    ("DOUBLE", '"1_0"', 10.0),
    ("DOUBLE", '"+-5"', -5.0),
    ("DECIMAL(5,2)", '"1_0"', Decimal("10.00")),
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
    ("VARCHAR", r'["\u001f", "\\u001f"]', r'["\u001F","\\u001f"]'),
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
    ("TIMESTAMP", '"2026-1-1"'),
    ("TIMESTAMP", '"2026-01-01T24:00:00"'),
    ("TIMESTAMPTZ", '"2026-01-01 01:02:03 Europe/Berlin"'),
    ("DATE", '"2026-01-01T01:02:03"'),
    ("DATE", '"10000-01-01"'),
    ("TIME", '"1:2"'),
    ("TIME", '"24:00:00"'),
    ("DECIMAL(5,2)", '"- "'),
    ("BLOB", '"12=4"'),
    ("UUID", "70000000000000000000000000000001"),
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


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMPTZ"])
def test_a_name_of_a_time_zone_moves_no_neighbour(type_):
    values = [b'{"c":"2026-01-01 01:02:03 Asia/Tokyo"}', b'{"c":"2026-01-01"}']
    found = decode(values, Column("c", type_)).table.column("c")
    assert found.cast(pa.int64()).to_pylist() == [1_767_225_600_000_000]


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


DEEP = b'{"q":' * 3000 + b"[1,2]" + b"}" * 3000


@pytest.mark.parametrize(
    ("value", "row"),
    [
        (b'{"q":%b}' % DEEP, None),
        (b'{ "q" : %b , "a" : 1, "a": 2, "s": "},{" }' % DEEP, 1),
        (b'{"b":{"a":5},"\\u0061":3,"q":%b}' % DEEP, 3),
    ],
)
def test_deep_nesting_elsewhere_does_no_harm(value, row):
    assert decode([value], Column("a", "BIGINT")).table.to_pylist() == [{"a": row}]


@pytest.mark.parametrize(
    ("value", "error"), [(b'{"a":%b' % DEEP, "InvalidJson"), (b"[%b]" % DEEP, "NotAnObject")]
)
def test_what_is_deep_and_no_object_is_refused(value, error):
    assert [bad.error for bad in decode([value], Column("a", "BIGINT")).bad] == [error]
