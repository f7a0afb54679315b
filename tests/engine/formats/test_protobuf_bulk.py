"""What is read in bulk is what Protobuf's own library reads."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaflow_engine.formats.protobuf import decode as decoding
from kaflow_engine.formats.protobuf.read import columns_of
from tests.engine.formats.protobuf_here import decode, frame, message

FLAT = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
enum State { UNKNOWN = 0; PAID = 1; BACK = -1; }
message V {
  double d = 1; float f = 2; int32 i = 3; int64 n = 4; uint32 ui = 5; uint64 un = 6;
  sint32 si = 7; sint64 sn = 8; fixed32 fi = 9; fixed64 fn = 10; sfixed32 sfi = 11;
  sfixed64 sfn = 12; bool bo = 13; string s = 14; bytes b = 15; State state = 16;
  optional int64 maybe = 17; optional string text = 2000; google.protobuf.Timestamp at = 20;
  optional bytes raw = 21; optional State perhaps = 22; optional double real = 23;
}
"""
NESTED = FLAT.replace("message V {", "message V { repeated V many = 30; V one = 31;")

I32, I64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
DOUBLES, SINGLES = st.floats(allow_nan=False), st.floats(allow_nan=False, width=32)
STATES = st.sampled_from([0, 1, -1, 7])
SECONDS = st.integers(-62_135_596_800, 253_402_300_799)
TIMES = st.fixed_dictionaries({"seconds": SECONDS, "nanos": st.integers(0, 10**9 - 1)})
FIELDS = {
    **{"d": DOUBLES, "f": SINGLES, "i": I32, "n": I64, "ui": U32, "un": U64, "si": I32, "sn": I64},
    **{"fi": U32, "fn": U64, "sfi": I32, "sfn": I64, "bo": st.booleans(), "s": st.text()},
    **{"b": st.binary(), "state": STATES, "maybe": I64, "text": st.text(), "at": TIMES},
    **{"raw": st.binary(), "perhaps": STATES, "real": DOUBLES},
}
MESSAGES = st.fixed_dictionaries({}, optional=FIELDS)


def both(monkeypatch, values, schema=FLAT, columns=None):
    """Return what is read in bulk, and what the library alone reads."""
    in_bulk = decode(values, schema, columns or columns_of(FLAT))
    with monkeypatch.context() as patch:
        patch.setattr(decoding, "wanted_of", lambda *_: None)
        return in_bulk, decode(values, schema, columns or columns_of(FLAT))


def plain(table):
    """Return rows; times as numbers, for Python knows no year behind 9999."""
    kinds = {field.name: pa.int64() for field in table.schema if pa.types.is_timestamp(field.type)}
    columns = [
        table[name].cast(kinds[name]) if name in kinds else table[name]
        for name in table.column_names
    ]
    return pa.table(columns, table.column_names).to_pylist()


def check(found, expected):
    # as text, for NaN equals nothing
    assert str(plain(found.table)) == str(plain(expected.table))
    assert found.good.to_pylist() == expected.good.to_pylist()
    assert found.bad == expected.bad


@pytest.mark.slow
@given(st.lists(MESSAGES, max_size=6), st.data())
@settings(max_examples=150, deadline=None)
def test_any_messages(rows, data):
    with pytest.MonkeyPatch.context() as patch:
        values = [frame(message(FLAT, **row)) for row in rows]
        check(*both(patch, values))
        names = data.draw(st.sets(st.sampled_from(sorted(FIELDS))))
        some = [column for column in columns_of(FLAT) if column.name in names]
        check(*both(patch, values, NESTED, some))


@pytest.mark.slow
@given(st.lists(MESSAGES, min_size=1, max_size=4), st.data())
@settings(max_examples=300, deadline=None)
def test_any_broken_messages(rows, data):
    values = []
    for row in rows:
        whole = message(FLAT, **row)
        at = data.draw(st.integers(0, len(whole)))
        noise = data.draw(st.binary(max_size=12))
        values.append(frame(whole[:at] + noise + whole[at + data.draw(st.integers(0, 3)) :]))
    with pytest.MonkeyPatch.context() as patch:
        check(*both(patch, values))


WRITTEN = [
    b"",
    b"\x18\x01\x18\x02",  # twice: the last counts
    b"\xa2\x01\x02\x08\x05\xa2\x01\x02\x10\x07",  # a time in two parts
    b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a varint that is too long
    b"\x18\x80\x80\x00",
    b"\x18",
    b"\x18\x80",
    b"\x00\x01",
    b"\x1d\x01\x00\x00\x00",  # another form of number than the field has
    b"\x72\x05abc",
    b"\x72\xff\xff\xff\xff\x0f",
    b"\x72\x01\xff",
    b"\xf8\xff\xff\xff\x0f\x01",
    b"\xf8\xff\xff\xff\xff\xff\x01\x01",
    b"\xfb\x01\xfc\x01",  # a group that no one knows
    b"\xfb\x01",
    b"\xf2\x03\x02\x18\x05",  # a field that no one knows
    b"\xa2\x01\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x05",
    b"\xa2\x01\x01\x08",
]


@pytest.mark.parametrize("one_more", [b"", b"\x18\x05"])
def test_bytes_as_someone_may_write_them(monkeypatch, one_more):
    check(*both(monkeypatch, [frame(each + one_more) for each in WRITTEN]))
    for each in WRITTEN:
        check(*both(monkeypatch, [frame(b"\x18\x07"), frame(each + one_more), frame(b"\x18\x08")]))


def test_most_messages_do_not_need_the_library(monkeypatch):
    monkeypatch.setattr(decoding, "_parsed", None)
    values = [frame(message(FLAT, i=number, s=str(number), at={})) for number in range(9)]
    assert decode(values, FLAT).table.column("s").to_pylist() == [str(n) for n in range(9)]
