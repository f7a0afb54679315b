"""Windows over records, batch by batch: which rows leave when they close, and what stays."""

# pyright: basic

import pytest

from kaflow_engine.flow.windows import CalendarWindow, FixedWindow, SessionWindow
from tests.engine.operators.aggregate.flows import COUNTS, TUMBLE, aggregate_of

pytestmark = pytest.mark.slow


def test_tumbling_windows_leave_when_they_are_closed(running):
    run = running(aggregate_of(1, True, {"n": "count(*)"}, TUMBLE))
    assert run.batch((10_000, "a", 1), (50_000, "a", 1)) == []
    assert run.batch((65_000, "a", 1)) == []
    assert run.batch((65_000, "b", 1)) == [("a", "0", 50_000, [2])]
    assert run.batch((30_000, "a", 1)) == []
    assert run.pipeline.counters["late_rows"] == 1
    assert run.end() == [("a", "60000", 65_000, [1]), ("b", "60000", 65_000, [1])]
    assert run.entries == 0


def test_late_rows_are_dead_letters_where_that_is_asked_for(running):
    one = aggregate_of(1, True, {"n": "count(*)"}, TUMBLE, on_late="dead_letter")
    run = running(one, raw="TRUE")
    run.batch((130_000, "a", 1))
    run.batch((10_000, "b", 1))
    ((phase, _, value),) = run.letters
    assert (phase, value) == ("late", b'{"ts": 10000, "k": "b", "v": 1}')


def test_hopping_windows(running):
    hop = FixedWindow(size=30_000, advance=15_000)
    run = running(aggregate_of(1, True, {"hi": "max(v)"}, hop, grace=60_000))
    found = [
        *run.batch((0, "k", 0)),
        *run.batch((89_999, "k", 1)),
        *run.batch((10_009, "k", 5)),
        *run.batch((90_000, "k", 0)),
        *run.batch((10_010, "k", 6)),
        *run.end(),
    ]
    assert sorted(found, key=lambda row: int(row[1])) == [
        ("k", "-15000", 0, [0]),
        ("k", "0", 10_009, [5]),
        ("k", "60000", 89_999, [1]),
        ("k", "75000", 90_000, [1]),
        ("k", "90000", 90_000, [0]),
    ]
    assert run.pipeline.counters["late_rows"] == 1
    assert run.entries == 0


def test_windows_that_send_at_once_send_nothing_when_they_close(running):
    hop = FixedWindow(size=5_000, advance=1_000)
    run = running(aggregate_of(1, True, {"n": "count(*)"}, hop, leaves="changes"))
    starts = sorted((row[1] for row in run.batch((10_345, "k", 1))), key=int)
    assert starts == ["6000", "7000", "8000", "9000", "10000"]
    assert run.end() == []
    assert run.entries == 0


def test_calendar_windows(running):
    run = running(aggregate_of(1, True, {"n": "count(*)"}, CalendarWindow(months=1)))
    day = 86_400_000
    run.batch((0, "k", 1), (30 * day, "k", 1), (31 * day, "k", 1), (-1, "k", 1))
    starts = sorted((int(row[1]) // day, row[3]) for row in run.end())
    assert starts == [(-31, [1]), (0, [2]), (31, [1])]


SESSION = [(0, "k0", 1), (70_010, "k0", 1), (10_009, "k0", 1), (10_010, "k0", 1)]


def test_sessions_leave_when_they_are_closed(running):
    window = SessionWindow(gap=30_000)
    run = running(aggregate_of(1, True, {"n": "count(*)"}, window), lateness=120_000)
    for row in SESSION:
        assert run.batch(row) == []
    assert run.end() == [("k0", "0", 10_010, [3]), ("k0", "70010", 70_010, [1])]
    assert run.entries == 0


def test_sessions_that_send_at_once(running):
    window = SessionWindow(gap=30_000)
    one = aggregate_of(1, True, {"n": "count(*)"}, window, leaves="changes")
    run = running(one, lateness=120_000)
    assert run.batch(*SESSION) == [
        ("k0", "0", 0, [1]),
        ("k0", "70010", 70_010, [1]),
        ("k0", "0", 10_009, [2]),
        ("k0", "0", 10_010, [3]),
    ]
    assert run.batch((40_010, "k0", 1)) == [  # it joins both
        ("k0", "70010", 70_010, None),
        ("k0", "0", 70_010, [5]),
    ]
    assert run.batch((-5, "k0", 1)) == [("k0", "0", 70_010, None), ("k0", "-5", 70_010, [6])]
    assert run.end() == []
    assert run.entries == 0


@pytest.mark.parametrize("at_once", [False, True])
def test_a_row_at_the_end_of_a_session_still_belongs_to_it(running, at_once):
    run = running(aggregate_of(1, True, {"n": "count(*)"}, SessionWindow(gap=30_000)))
    rows = [(0, "k", 1), (30_000, "j", 1), (30_000, "k", 1), (100_000, "j", 1)]
    found = []
    for cut in [rows] if at_once else [[row] for row in rows]:
        found += run.batch(*cut)
    found += run.end()
    assert [row for row in found if row[0] == "k"] == [("k", "0", 30_000, [2])]


def test_a_window_that_fails_is_a_dead_letter_when_it_is_closed(running):
    tiny = {"s": ("UTINYINT", 'CAST("r1.s" AS UTINYINT)')}
    run = running(aggregate_of(1, True, {"s": "sum(v)"}, TUMBLE), select=tiny)
    run.batch((1, "a", 300), (2, "b", 3))
    assert run.end() == [("b", "0", 2, [3])]
    ((phase, message, _),) = run.letters
    assert phase == "result"
    assert "window 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z" in message


def test_having_filters_windows(running):
    run = running(aggregate_of(1, True, COUNTS, TUMBLE), where='"r1.n" > 1')
    run.batch((1, "a", 300), (2, "b", 3), (3, "b", 4))
    assert run.end() == [("b", "0", 3, [2, 7, 3, 4])]
    assert run.letters == []


def test_kept_rows_of_closed_windows_and_joined_sessions_are_forgotten(running):
    window = SessionWindow(gap=10)
    run = running(aggregate_of(1, True, {"l": "list(v )", "f": "first(v)"}, window), lateness=1000)
    run.batch((0, "a", 1), (15, "a", 2), (100, "a", 3))
    run.batch((8, "a", 4))
    assert run.end() == [("a", "0", 15, [[1, 2, 4], 1]), ("a", "100", 100, [[3], 3])]
    assert run.entries == 0


@pytest.mark.parametrize(
    "cuts", [[[5_000, 600_000]], [[5_000], [600_000]], [[5_000], [62_000], [600_000]]]
)
def test_windows_behind_windows(running, cuts):
    inner = aggregate_of(1, True, {"n": "count(*)"}, FixedWindow(size=10_000, advance=10_000))
    outer = aggregate_of(2, True, {"s": "sum(v)"}, TUMBLE, delay=10_000)
    run = running(inner, outer, args=('"r1.n"::INTEGER', "NULL::INTEGER"))
    rows = [row for cut in cuts for row in run.batch(*((ts, "k", 1) for ts in cut))] + run.end()
    times = [ts for cut in cuts for ts in cut]
    wanted = {ts // 60_000 * 60_000 for ts in times}
    assert [(int(row[1]), row[3]) for row in rows] == [(start, [1]) for start in sorted(wanted)]
    assert run.pipeline.counters["late_rows"] == 0
    assert run.entries == 0
