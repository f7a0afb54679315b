# pyright: basic

from dataclasses import replace

import pyarrow as pa
import pytest

from kaflow_engine.operators.source.keys import read_keys
from tests.engine.operators.table.flows import topic as table_topic

READ = [
    ("text", "VARCHAR", [b"a", None, b"\xff"], ["a", None, None], {2: "the key is no UTF-8"}),
    (
        "int",
        "INTEGER",
        [b"\xff\xff\xff\xfe", b"", None, b"12345"],
        [-2, None, None, None],
        {
            1: "the key has 0 bytes, and one of format int has 4",
            3: "the key has 5 bytes, and one of format int has 4",
        },
    ),
    ("long", "BIGINT", [b"\x80" + 7 * b"\0", 8 * b"\0"], [-(2**63), 0], {}),
    ("bytes", "BLOB", [b"\xff", None, b""], [b"\xff", None, b""], {}),
    (
        "json",
        "STRUCT(id BIGINT)",
        [b'{"id":5}', b"5", None, b'{"id":', b'{"id":"x"}', b'{"ID":1}', b'{"id":1},"x":{}'],
        [{"id": 5}, None, None, None, None, {"id": None}, None],
        {
            1: "the key is no STRUCT(id BIGINT)",
            3: "the key is no JSON",
            4: "the key is no STRUCT(id BIGINT)",
            6: "the key is no JSON",
        },
    ),
    ("json", "BIGINT", [b"5", b'"6"', b" 7 ", b"null"], [5, 6, 7, None], {}),
]


@pytest.mark.parametrize(("form", "kind", "keys", "values", "wrong"), READ)
def test_keys_are_read_as_their_topic_says(form, kind, keys, values, wrong):
    topic = replace(table_topic("t", 0), key_format=form, key_type=kind)
    found = read_keys(topic, pa.chunked_array([pa.array(keys, pa.binary())]), str)
    assert found.values.to_pylist() == values
    assert found.wrong == wrong
