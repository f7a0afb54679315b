"""Columns guessed from a sample."""

import pytest

from kaflow_engine.formats.json.sample import columns_of_sample

CASES = [
    ([], {}),
    ([b'{"a":1,"b":1.5,"c":true,"d":"x"}'], dict(a="BIGINT", b="DOUBLE", c="BOOLEAN", d="VARCHAR")),
    ([b'{"a":1}', b'{"a":1.5}'], {"a": "DOUBLE"}),
    ([b'{"a":1}', b'{"a":"x"}'], {"a": "VARCHAR"}),
    ([b'{"a":1}', b'{"a":true}'], {"a": "VARCHAR"}),
    ([b'{"a":9223372036854775808}'], {"a": "VARCHAR"}),
    ([b'{"a":null}', b'{"b":1}'], {"a": "VARCHAR", "b": "BIGINT"}),
    ([b'{"a":null}', b'{"a":1}'], {"a": "BIGINT"}),
    ([b'{"a":{"x":1}}', b'{"a":{"y":[1,2.5]}}'], {"a": 'STRUCT("x" BIGINT, "y" DOUBLE[])'}),
    ([b'{"a":[]}', b'{"b":[null]}'], {"a": "VARCHAR[]", "b": "VARCHAR[]"}),
    ([b'{"a":[{"x":1},{"x":null}]}'], {"a": 'STRUCT("x" BIGINT)[]'}),
    ([b'{"a":{}}'], {"a": "VARCHAR"}),
    ([b'{"a":1,"A":"x"}', b'{"A":"y"}'], {"a": "BIGINT"}),
    ([b"nope", b"[1]", b"\xff", b'{"a":1}'], {"a": "BIGINT"}),
]


@pytest.mark.parametrize(("values", "expected"), CASES)
def test_guesses(values, expected):
    assert {c.name: c.type for c in columns_of_sample(values)} == expected
