"""Which items of GROUP BY are windows of event time, and which ones they are."""

from datetime import datetime, timedelta

import duckdb
import pytest

from kaflow_engine.flow.windows import (
    CalendarWindow,
    FixedWindow,
    NamedWindow,
    SessionWindow,
    Window,
)
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.groups.event_time import EventTimes
from kaflow_engine.sql.parse import parse_query

COLUMNS = {
    "t": (Column("id", "VARCHAR"), Column("ts", "TIMESTAMP"), Column("other", "TIMESTAMP")),
    "ms": (Column("at", "BIGINT"), Column("other", "BIGINT")),
    "kafka": (Column("ts", "TIMESTAMP"),),
    "own": (Column("_time", "TIMESTAMP"),),
}
EVENT_TIMES = {"t": "TS", "ms": "at"}
SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
EPOCH = datetime(1970, 1, 1)


def window(item: str, topic: str = "t") -> Window | None:
    """Return the window of rows that are grouped by an item."""
    return read(f"SELECT count(*) AS n FROM {topic} GROUP BY {item}")


def read(sql: str) -> Window | None:
    (shape,) = read_branches(
        parse_query(sql), COLUMNS.get, None, {}, EventTimes(column=EVENT_TIMES.get)
    )
    group = shape.groups[-1]
    assert (group.window is None) == (len(group.keys) == 1)
    return group.window


def fixed(size: int, advance: int | None = None, origin: int = 0) -> FixedWindow:
    return FixedWindow(size=size, advance=advance or size, origin=origin)


EXPLICIT: list[tuple[str, Window]] = [
    ("tumble(INTERVAL 5 MINUTE)", fixed(5 * MINUTE)),
    ("tumble(_time, INTERVAL '90 seconds')", fixed(90 * SECOND)),
    ("TUMBLE(t._time, to_minutes(2))", fixed(2 * MINUTE)),
    ("tumble(ts, INTERVAL '1 day 12 hours')", fixed(36 * HOUR)),
    ("tumble(CAST(ts AS TIMESTAMP), INTERVAL 1 WEEK)", fixed(7 * DAY)),
    ("hop(INTERVAL 10 SECOND, INTERVAL 5 SECOND)", fixed(10 * SECOND, 5 * SECOND)),
    ("hop(_time, INTERVAL 1 HOUR, INTERVAL 15 MINUTE)", fixed(HOUR, 15 * MINUTE)),
    ("session(INTERVAL 30 SECOND)", SessionWindow(gap=30 * SECOND)),
    ("session(_time, INTERVAL '1 minute 500 milliseconds')", SessionWindow(gap=60_500)),
]


@pytest.mark.parametrize(("item", "found"), EXPLICIT)
def test_windows_by_name(item: str, found: Window) -> None:
    assert window(item) == found


CLOCKS = [
    ("date_trunc('hour', _time)", "t"),
    ("date_trunc('hour', t.TS)", "t"),
    ("date_trunc('hour', epoch_ms(at))", "ms"),
    ("date_trunc('hour', make_timestamp_ms(at))", "ms"),
    ("date_trunc('hour', make_timestamp(at * 1000))", "ms"),
    ("date_trunc('hour', make_timestamp(1000 * ms.at))", "ms"),
    ("date_trunc('hour', _time)", "kafka"),
    ("date_trunc('hour', renamed)", "(SELECT ts AS renamed FROM t)"),
    ("hour", "(SELECT date_trunc('hour', w) AS hour FROM (SELECT _time AS w FROM kafka))"),
    ("tumble(at, INTERVAL 1 HOUR)", "ms"),
    ("tumble(renamed, INTERVAL 1 HOUR)", "(SELECT epoch_ms(at) AS renamed FROM ms)"),
]


@pytest.mark.parametrize(("item", "topic"), CLOCKS)
def test_the_event_time_is_known_in_every_form(item: str, topic: str) -> None:
    assert window(item, topic) == fixed(HOUR)


EXPRESSIONS = [
    ("date_trunc('hour', other)", "t"),
    ("date_trunc('hour', ts + INTERVAL 1 MINUTE)", "t"),
    ("date_trunc('hour', CAST(ts AS DATE))", "t"),
    ("date_trunc('hour', ts)", "kafka"),
    ("date_trunc('hour', _time)", "own"),
    ("date_trunc('hour', epoch_ms(other))", "ms"),
    ("date_trunc('hour', make_timestamp(at))", "ms"),
    ("date_trunc('hour', at)", "ms"),
    ("date_trunc('hour', CAST(at AS TIMESTAMP))", "ms"),
    ("date_trunc('hour', to_timestamp(at))", "ms"),
    ("date_trunc(id, ts)", "t"),
    ("date_trunc('microsecond', ts)", "t"),
    ("time_bucket(INTERVAL 1 HOUR, ts, 'Europe/Amsterdam')", "t"),
    ("time_bucket(INTERVAL 1 MICROSECOND, ts)", "t"),
    ("time_bucket(INTERVAL 1 MONTH, ts, INTERVAL 1 DAY)", "t"),
    ("ts", "t"),
]


@pytest.mark.parametrize(("item", "topic"), EXPRESSIONS)
def test_others_are_grouping_values(item: str, topic: str) -> None:
    assert window(item, topic) is None


UNITS = [
    *("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"),
    *("decade", "century", "millennium", "minutes", "hr"),
]
LIKE_DUCKDB = [
    *(f"date_trunc('{unit}', ts)" for unit in UNITS),
    "time_bucket(INTERVAL 5 MINUTE, ts)",
    "time_bucket(INTERVAL 36 HOUR, ts)",
    "time_bucket(INTERVAL '1 week', ts)",
    "time_bucket(INTERVAL 7 HOUR, ts, TIMESTAMP '2020-02-03 04:05:06')",
    "time_bucket(INTERVAL 1 DAY, ts, INTERVAL 6 HOUR)",
    "time_bucket(INTERVAL 5 MONTH, ts)",
    "time_bucket(INTERVAL 2 YEAR, ts, TIMESTAMP '2001-05-20')",
    "time_bucket(INTERVAL 5 MONTH, ts, INTERVAL 2 MONTH)",
]
TIMES = [
    *(datetime(1969, 12, 31, 23, 59, 59, 999000), EPOCH, datetime(1970, 1, 4, 23)),
    *(datetime(2000, 1, 2), datetime(2000, 1, 3), datetime(2020, 2, 29, 13, 37, 1, 234000)),
    *(datetime(2024, 12, 31, 23, 59, 59), datetime(2025, 5, 1), datetime(1901, 3, 9, 5)),
]


def start(of: Window | None, time: datetime) -> datetime:
    """Return the start of the window into which a time falls."""
    match of:
        case FixedWindow(size=size, origin=origin):
            since = (time - EPOCH) // timedelta(milliseconds=1) - origin
            return EPOCH + timedelta(milliseconds=since // size * size + origin)
        case CalendarWindow(months=months, origin=origin):
            since = (time.year - 1970) * 12 + time.month - 1 - origin
            first = since // months * months + origin
            return datetime(1970 + first // 12, first % 12 + 1, 1)
        case _:
            raise AssertionError(of)


@pytest.mark.parametrize("expression", LIKE_DUCKDB)
def test_a_window_starts_where_duckdb_says(expression: str) -> None:
    found = window(expression)
    with duckdb.connect() as connection:
        for time in TIMES:
            select = f"SELECT CAST({expression} AS TIMESTAMP) FROM (SELECT ? AS ts)"
            assert connection.execute(select, [time]).fetchall() == [(start(found, time),)]


BEHIND = [
    ("tumble(INTERVAL 1 MINUTE)", "tumble(_time, INTERVAL 5 MINUTE)", fixed(5 * MINUTE)),
    ("tumble(INTERVAL 1 MINUTE)", "tumble(window_start, INTERVAL 5 MINUTE)", fixed(5 * MINUTE)),
    ("tumble(INTERVAL 1 MINUTE)", "date_trunc('hour', window_start)", fixed(HOUR)),
    ("tumble(INTERVAL 1 MINUTE)", "window_start", fixed(MINUTE)),
    ("tumble(INTERVAL 7 MINUTE)", "date_trunc('hour', window_start)", None),
    ("date_trunc('month', ts)", "date_trunc('year', window_start)", CalendarWindow(months=12)),
    ("tumble(INTERVAL 1 HOUR)", "date_trunc('year', window_start)", CalendarWindow(months=12)),
    ("tumble(INTERVAL 36 HOUR)", "date_trunc('month', window_start)", None),
    ("hop(INTERVAL 2 MINUTE, INTERVAL 1 MINUTE)", "window_start", NamedWindow(size=2 * MINUTE)),
    ("session(INTERVAL 1 MINUTE)", "date_trunc('hour', window_start)", None),
    ("session(INTERVAL 1 MINUTE)", "window_start", None),
    ("session(INTERVAL 1 MINUTE)", "date_trunc('hour', _time)", fixed(HOUR)),
    ("tumble(INTERVAL 1 MINUTE)", "window_end", None),
]


@pytest.mark.parametrize(("inner", "outer", "found"), BEHIND)
def test_windows_behind_windows(inner: str, outer: str, found: Window | None) -> None:
    below = f"SELECT window_start, window_end, count(*) AS n FROM t GROUP BY id, {inner}"
    assert read(f"SELECT sum(n) AS n FROM ({below}) GROUP BY {outer}") == found


def test_a_window_is_known_in_other_words() -> None:
    sql = (
        "SELECT time_bucket('5 minutes', ts) AS a, time_bucket(INTERVAL '5' MINUTE, _time) AS b, "
        "count(*) AS n FROM t GROUP BY time_bucket(INTERVAL 300 SECONDS, TS)"
    )
    (shape,) = read_branches(
        parse_query(sql), COLUMNS.get, None, {}, EventTimes(column=EVENT_TIMES.get)
    )
    start = '"grouped.window_start"'
    assert [output.expr.sql for output in shape.outputs] == [start, start, '"grouped.c0"']


def test_all_columns_of_windows_below() -> None:
    below = "SELECT id, window_start, window_end FROM t GROUP BY id, tumble(INTERVAL 1 MINUTE)"
    sql = f"SELECT window_start, window_end, count(*) AS n FROM ({below}) GROUP BY ALL"
    (shape,) = read_branches(
        parse_query(sql), COLUMNS.get, None, {}, EventTimes(column=EVENT_TIMES.get)
    )
    group = shape.groups[-1]
    assert group.window == fixed(MINUTE)
    assert [expr.sql for _, expr in group.keys] == ['"grouped.window_end"']
