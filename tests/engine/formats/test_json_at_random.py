"""Random JSON to columns: in bulk as one by one, whatever stands beside a value."""

import base64
import json
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaflow_engine.formats.decoded import Unreadable
from kaflow_engine.formats.json import decode as json_in
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.json.reference import read_object
from kaflow_engine.model.columns import Column

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def in_bulk(monkeypatch):
    """A few texts would not be worth a lane."""
    monkeypatch.setattr(json_in, "FEW", 0)


def decode(texts, *columns):
    return decode_json(pa.array(texts, pa.binary()), columns)


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


@given(st.lists(st.dictionaries(st.sampled_from("abcdefgh"), VALUES), max_size=6))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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


ODD = {
    "BIGINT": ["1", "-0", "9223372036854775808", "1.0", "1e3", "0x1"],
    "DOUBLE": ["1.5", "-1e300", "1e-400", "inf", ".5", "5.", "+-0"],
    "FLOAT": ["1e39", "16777217", "nan"],
    "DECIMAL(5,2)": ["1.10", "1.005", "999.995", "1e2", "-0.001", "1.002e3", "-1.02e3"],
    "DECIMAL(20,4)": ["1.0000000000000002e+16", "-1.5e16", "9.9999999999999999999e15"],
    "DECIMAL(3,3)": ["0.999", "1.5e0", "9.9e-1"],
    "DECIMAL(38,0)": ["9.5e37", "1.5e38", "-1.25e38"],
    "BOOLEAN": ["true", "TRUE", "t"],
    "DATE": ["2026-01-01", "2026-02-30", "0001-01-01", "2026-1-1", "epoch"],
    "TIME": ["01:02:03", "23:59:59.999999", "24:00:00", "1:2", "01:02:03+02", "23:59:60"],
    "TIMESTAMP": ["2026-01-01T01:02:03.123456789Z", "2026-01-01 01:02 UTC", "9999-12-31T23:59:60"],
    "TIMESTAMPTZ": ["2026-01-01T01:02:03+02:00", "2026-01-01T01:02+0230", "2026-01-01", "infinity"],
    "BLOB": ["aGk=", "aGk", "-_=="],
    "UUID": ["00000000-0000-0000-0000-00000000000A", "{00000000000000000000000000000001}"],
}


@st.composite
def odd_texts(draw, kind):
    """Texts that are nearly values of a type."""
    text = draw(st.sampled_from(ODD[kind]))
    for _ in range(draw(st.integers(0, 2))):
        at, much = draw(st.integers(0, len(text))), draw(st.integers(0, 1))
        text = (
            text[:at] + draw(st.sampled_from(["", *"0123456789:-.TZ+ eE,_=/"])) + text[at + much :]
        )
    return text


@pytest.mark.parametrize("kind", ODD)
@given(data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_value_does_not_depend_on_its_neighbours(kind, data):
    column = Column("c", kind)
    texts = [json.dumps({"c": each}) for each in data.draw(st.lists(odd_texts(kind), max_size=9))]
    found = decode([text.encode() for text in texts], column)
    alone = {}
    for row, text in enumerate(texts):
        with suppress(Unreadable):
            alone[row] = read_object(text, [column])[0]
    expected = pa.array(alone.values(), found.table.schema.field("c").type)
    assert found.good.to_pylist() == list(alone)
    assert found.table.column("c").combine_chunks().equals(expected)


@given(st.binary(max_size=30), st.text(max_size=10))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_are_good_or_bad(noise, text):
    values = [noise, json.dumps({"a": text}).encode(), base64.b64encode(noise)]
    found = decode(values, Column("a", "VARCHAR"), Column("b", "DECIMAL(10,2)"))
    assert len(found.bad) + len(found.good) == 3
