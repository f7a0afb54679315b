"""Columns that every record has besides its value, as they are made of raw records."""

# pyright: basic

import datetime as dt

import pyarrow as pa
import pytest

from kaflow_engine.flow.records import RECORDS
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.model.columns import Column
from kaflow_engine.model.record_columns import RECORD_COLUMNS
from kaflow_engine.operators.source.decode import read_topic

OWN = (Column("n", "BIGINT"), Column("at", "BIGINT"))
NOW = 1_767_225_600_000


def topic(*names, **more):
    chosen = tuple(column for column in RECORD_COLUMNS if column.name in names)
    about = {
        **{"name": "t", "index": 0, "format": "json", "columns": OWN, "event_time": None},
        **{"dimension": False, "rank": 2, "driving": True, "on_error": "dead_letter"},
        **{"max_future": 1000, "lateness": 0, "idle_timeout": 0, "record_columns": chosen},
    }
    return TopicParams(**{**about, **more})


def read(topic, *records):
    rows = [
        {"topic": "t", "partition": 3, "offset": 7 + n, "timestamp": NOW, "value": b"{}", **record}
        for n, record in enumerate(records)
    ]
    return read_topic(topic, pa.Table.from_pylist(rows, schema=RECORDS), NOW, str)[0]


def columns(intake):
    return {name: intake.rows[name].to_pylist() for name in intake.rows.column_names}


def headers(*pairs):
    return [{"key": name, "value": value} for name, value in pairs]


def test_only_those_that_are_used_are_made():
    assert set(columns(read(topic(), {}))) == {"c.n", "c.at", "rn", "$ts", "$time"}
    found = columns(read(topic("_offset", "_partition", "_topic"), {}, {}))
    assert [name for name in found if name.startswith("c._")] == [
        *("c._topic", "c._partition", "c._offset")
    ]
    assert (found["c._topic"], found["c._partition"], found["c._offset"]) == (
        *(["t", "t"], [3, 3]),
        [7, 8],
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {}),
        ([], {}),
        (headers(("a", b"1"), ("b", None)), {"a": b"1", "b": None}),
        (headers(("a", b"1"), ("b", b"2"), ("a", b"3")), {"b": b"2", "a": b"3"}),
        (headers(("a", b"1"), ("a", None)), {"a": None}),
        (headers(("", b"\xff")), {"": b"\xff"}),
    ],
)
def test_the_last_header_of_a_name_counts(given, expected):
    (found,) = columns(read(topic("_headers"), {"headers": given}))["c._headers"]
    assert dict(found) == expected


@pytest.mark.parametrize("many", [1, 40])
def test_a_key_that_is_no_text_makes_a_bad_record_only_where_it_is_used(many):
    given = [{"key": b"k\xc3\xa9"}, {"key": b"\xff"}, {"key": None}, {"key": b""}] * many
    intake = read(topic("_key"), *given)
    assert columns(intake)["c._key"] == ["ké", None, ""] * many
    assert columns(intake)["rn"] == [n for n in range(4 * many) if n % 4 != 1]
    assert [(bad.row, bad.phase, bad.error) for bad in intake.bad] == [
        (n, "decode", "InvalidKey") for n in range(1, 4 * many, 4)
    ]
    assert read(topic("_offset"), *given).bad == ()


def test_times_are_those_of_the_record_and_of_its_column():
    timed = topic("_time", "_timestamp", event_time='"c.at"')
    found = columns(read(timed, {"value": b'{"at": -1}'}, {"value": b'{"at": 1500}'}))
    assert found["c._timestamp"] == [dt.datetime(2026, 1, 1)] * 2
    assert found["c._time"] == [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
        dt.datetime(1970, 1, 1, 0, 0, 1, 500000),
    ]


def test_a_time_that_no_timestamp_holds_makes_a_bad_record():
    timed = topic("_time", event_time='"c.at"')
    given = [{"value": b'{"at": -9000000000000000000}'}, {"value": b'{"at": 0}'}]
    intake = read(timed, *given)
    assert columns(intake)["rn"] == [1]
    assert [(bad.row, bad.phase) for bad in intake.bad] == [(0, "decode")]
    assert read(topic(event_time='"c.at"'), *given).bad == ()


def test_what_is_bad_takes_no_part_in_order_time():
    given = [{"timestamp": NOW + 9, "key": b"\xff"}, {"timestamp": NOW + 1, "key": b"k"}]
    assert columns(read(topic("_key"), *given))["$time"] == [NOW + 1]


def test_a_null_value_is_a_row_at_its_place():
    given = [{"value": b'{"n": 1, "at": 5}'}, {"value": None, "key": b"k"}, {"value": b"[]"}]
    asked = topic("_key", "_time", event_time='"c.at"', on_null="row")
    intake = read(asked, *given, {"value": b'{"n": 2, "at": 6}'})
    found = columns(intake)
    assert (found["rn"], found["c.n"], found["$ts"]) == ([0, 1, 3], [1, None, 2], [5, NOW, 6])
    assert (found["c._key"], found["c._time"][1]) == ([None, "k", None], dt.datetime(2026, 1, 1))
    assert [bad.row for bad in intake.bad] == [2]
    assert (len(intake.nulls), len(intake.tombstones)) == (0, 0)


@pytest.mark.parametrize("on_null", ["skip", "row"])
def test_nothing_but_null_values(on_null):
    intake = read(topic("_offset", on_null=on_null), {"value": None}, {"value": None})
    rows = on_null == "row"
    assert columns(intake)["c._offset"] == ([7, 8] if rows else [])
    assert intake.nulls.to_pylist() == ([] if rows else [0, 1])


def test_a_null_value_ahead_of_its_time_is_bad():
    asked = topic(on_null="row", event_time='"c.at"')
    intake = read(asked, {"value": None, "timestamp": NOW + 1001})
    assert (len(intake.rows), [bad.phase for bad in intake.untimed]) == (0, ["event_time"])
