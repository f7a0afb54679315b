# pyright: basic

import pytest

from kaflow_engine.duck.queries import query
from kaflow_engine.formats.keys import key_bytes_sql, key_of_text, text_of_key

WINDOW = 'STRUCT("key" BIGINT, "start" BIGINT)'
SESSION = 'STRUCT("key" VARCHAR, "start" BIGINT, "end" BIGINT)'

WRITTEN = [
    ("text", "VARCHAR", "'ä'", "ä".encode(), "ä"),
    ("text", "BIGINT", "5::BIGINT", b"5", "5"),
    ("int", "INTEGER", "-2::INTEGER", b"\xff\xff\xff\xfe", "-2"),
    ("int", "SMALLINT", "2::SMALLINT", b"\0\0\0\2", "2"),
    ("long", "BIGINT", "(-9223372036854775808)::BIGINT", b"\x80" + 7 * b"\0", str(-(2**63))),
    ("long", "INTEGER", "258::INTEGER", 6 * b"\0" + b"\1\2", "258"),
    ("bytes", "BLOB", r"'\x00\xff'::BLOB", b"\0\xff", "\0\\xff"),
    ("bytes", "VARCHAR", "'a'", b"a", "a"),
    ("json", "VARCHAR", "'a'", b'"a"', '"a"'),
    ("json", "STRUCT(id BIGINT)", "{'id': 5}", b'{"id":5}', '{"id":5}'),
    (
        "windowed_long",
        WINDOW,
        'struct_pack("key" := 7::BIGINT, "start" := 60000::BIGINT)',
        7 * b"\0" + b"\7" + 6 * b"\0" + b"\xea\x60",
        "7@60000",
    ),
    (
        "session_text",
        SESSION,
        'struct_pack("key" := \'a\', "start" := 1::BIGINT, "end" := 2::BIGINT)',
        b"a" + 7 * b"\0" + b"\2" + 7 * b"\0" + b"\1",
        "a@1/2",
    ),
]


@pytest.mark.parametrize(("form", "kind", "sql", "key", "text"), WRITTEN)
def test_a_key_is_written_and_shown(form, kind, sql, key, text):
    (row,) = query(f"SELECT {key_bytes_sql(form, kind, f'({sql})')} AS key").to_pylist()
    assert row["key"] == key
    assert text_of_key(form, key) == text


@pytest.mark.parametrize(("form", "kind"), [(form, kind) for form, kind, *_ in WRITTEN])
def test_null_is_no_key(form, kind):
    (row,) = query(f"SELECT {key_bytes_sql(form, kind, f'(NULL::{kind})')} AS key").to_pylist()
    assert row["key"] is None


@pytest.mark.parametrize(
    ("form", "text", "key"),
    [
        ("text", "5", b"5"),
        ("json", '{"a":1}', b'{"a":1}'),
        ("int", "-2", b"\xff\xff\xff\xfe"),
        ("long", "258", 6 * b"\0" + b"\1\2"),
    ],
)
def test_a_key_as_people_write_it(form, text, key):
    assert key_of_text(form, text) == key


@pytest.mark.parametrize(("form", "text"), [("int", "2147483648"), ("long", "x"), ("int", "1.5")])
def test_a_text_that_is_no_key(form, text):
    with pytest.raises(ValueError, match=r"int|fit"):
        key_of_text(form, text)
