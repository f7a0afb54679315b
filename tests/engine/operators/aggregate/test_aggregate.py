"""Groups of records, batch by batch: which changes leave, and what stays."""

# pyright: basic

import random
from dataclasses import replace

import duckdb
import pytest

from kaflow_engine.flow.windows import SessionWindow
from tests.engine.operators.aggregate.flows import COUNTS, TUMBLE, Running, aggregate_of

pytestmark = pytest.mark.slow

RECORDS = [(1, "a", 5), (2, "b", 1), (3, "a", 7), (4, None, 2), (5, "a", None)]


def test_each_change_leaves_in_order(running):
    run = running(aggregate_of(1, True, COUNTS))
    assert run.batch(*RECORDS[:3]) == [
        ("a", 1, [1, 5, 5, 5]),
        ("b", 2, [1, 1, 1, 1]),
        ("a", 3, [2, 12, 5, 7]),
    ]
    assert run.batch(*RECORDS[3:]) == [(None, 4, [1, 2, 2, 2]), ("a", 5, [3, 12, 5, 7])]
    assert run.batch() == []


def test_one_change_of_a_group_leaves_in_a_batch(running):
    run = running(aggregate_of(1, True, COUNTS, each=False))
    assert run.batch(*RECORDS[:3]) == [("b", 2, [1, 1, 1, 1]), ("a", 3, [2, 12, 5, 7])]


def test_without_grouping_values_all_rows_are_one_group(running):
    run = running(aggregate_of(1, False, {"n": "count(*)"}, each=False))
    assert run.batch() == []
    assert run.batch(*RECORDS) == [(5, [5])]


def test_what_changes_nothing_does_not_leave(running):
    run = running(aggregate_of(1, True, {"hi": "max(v)"}))
    assert run.batch((1, "a", 5), (2, "a", 3)) == [("a", 1, [5])]
    assert run.batch((3, "a", 5)) == []
    assert run.batch((4, "a", 6)) == [("a", 4, [6])]


def test_groups_without_calls(running):
    run = running(aggregate_of(1, True, {}))
    assert run.batch(*RECORDS) == [("a", 1, []), ("b", 2, []), (None, 4, [])]
    assert run.batch(*RECORDS) == []


def test_having_deletes_and_inserts(running):
    run = running(aggregate_of(1, True, {"s": "sum(v)"}), where='"r1.s" > 5')
    assert run.batch((1, "a", 5)) == []
    assert run.batch((2, "a", 5)) == [("a", 2, [10])]
    assert run.batch((3, "a", -8), (4, "a", 1)) == [("a", 3, None)]
    assert run.batch((5, "a", 8)) == [("a", 5, [11])]


def test_a_result_that_fails_is_not_sent_and_the_last_one_stays(running):
    tiny = {"s": ("UTINYINT", 'CAST("r1.s" AS UTINYINT)')}
    run = running(aggregate_of(1, True, {"s": "sum(v)"}), select=tiny)
    assert run.batch((1, "a", 200), (2, "a", 100), (3, "a", -100)) == [("a", 1, [200])]
    ((phase, message, value),) = run.letters
    assert (phase, value) == ("result", None)
    assert message.startswith("group (k = a): ")
    assert run.batch((4, "a", 100)) == []
    assert len(run.letters) == 2
    assert run.batch((5, "a", -100)) == []  # 200 is what was sent last
    assert run.batch((6, "a", -100)) == [("a", 6, [100])]


def test_coalesced_results_that_fail_compare_with_what_was_sent(running):
    tiny = {"s": ("UTINYINT", 'CAST("r1.s" AS UTINYINT)')}
    run = running(aggregate_of(1, True, {"s": "sum(v)"}, each=False), select=tiny)
    assert run.batch((1, "a", 200), (2, "a", 100), (3, "a", -100)) == [("a", 3, [200])]
    assert run.letters == []


def test_a_coalesced_result_that_fails_stays_as_it_was_until_it_differs(running):
    tiny = {"s": ("UTINYINT", 'CAST("r1.s" AS UTINYINT)')}
    run = running(aggregate_of(1, True, {"s": "sum(v)"}, each=False), select=tiny)
    assert run.batch((1, "a", 200), (2, "b", 1)) == [("a", 1, [200]), ("b", 2, [1])]
    assert run.batch((3, "a", 100), (4, "b", 1)) == [("b", 4, [2])]
    ((phase, message, _),) = run.letters
    assert phase == "result"
    assert message.startswith("group (k = a): ")
    assert run.batch((5, "a", -100)) == []  # 200 is what was sent last
    assert run.batch((6, "a", -100), (7, "c", 1)) == [("a", 6, [100]), ("c", 7, [1])]


def test_an_accumulator_that_overflows_fails_its_group_alone(running):
    run = running(
        aggregate_of(
            1, True, {"p": "sum(v::HUGEINT * 85070591730234615865843651857942)"}, each=False
        )
    )
    given = [(n, "a", 2_000_000_000) for n in range(1001)]
    assert run.batch((1, "b", 1), *given)[0][0] == "b"
    assert [phase for phase, _, _ in run.letters] == ["result"]
    assert run.batch((2, "a", 1)) == []
    assert len(run.letters) == run.pipeline.counters["failed_results"] == 2


def test_a_record_on_which_an_argument_fails_is_a_dead_letter(running):
    run = running(aggregate_of(1, True, {"n": "count(*)"}), args=("v", "w"))
    bad = run.flow.operators[1]
    columns = (bad.columns[0], (bad.columns[1][0], 'CAST("t.k" AS INTEGER)'), bad.columns[2])
    given = replace(
        run.flow,
        operators=tuple(
            replace(bad, columns=columns) if o == bad else o for o in run.flow.operators
        ),
    )
    run = Running(given)
    assert run.batch((1, "7", 1), (2, "x", 1)) == [("7", 1, [1])]
    assert [phase for phase, _, _ in run.letters] == ["sql"]


@pytest.mark.parametrize("each", [True, False])
def test_kept_rows_give_what_duckdb_gives(running, each):
    given = {
        "m": "median(v)",
        "l": "list(v ORDER BY w DESC)",
        "d": "count(DISTINCT v) FILTER (WHERE w > 1)",
        "t": "string_agg(v, ',' )",
    }
    run = running(aggregate_of(1, True, given, each=each))
    rows = [(1, "a", 3, 1), (2, "a", 9, 2), (3, "b", 1, 2), (4, "a", 3, 3), (5, "a", 9, 3)]
    run.batch(rows[0])
    found = run.batch(*rows[1:4])
    assert (("a", 2, [6.0, [9, 3], 1, "3,9"]) in found) == each
    assert ("a", 4, [3.0, [3, 9, 3], 2, "3,9,3"]) in found
    assert run.batch(rows[4]) == [("a", 5, [6.0, [3, 9, 9, 3], 2, "3,9,3,9"])]


@pytest.mark.parametrize("each", [True, False])
def test_groups_are_forgotten_after_their_ttl(running, each):
    run = running(aggregate_of(1, True, {"n": "count(*)"}, ttl=100, each=each))
    assert run.batch((0, "a", 1)) == [("a", 0, [1])]
    assert run.batch((100, "a", 1)) == [("a", 100, [2])]
    assert run.batch((201, "b", 1)) == [("b", 201, [1])]
    assert run.batch((202, "a", 1)) == [("a", 202, [1])]
    assert run.batch((350, "c", 1)) == [("c", 350, [1])]
    assert run.batch((351, "a", 1)) == [("a", 351, [1])]  # forgotten in this very batch
    run.end()
    assert run.entries == 4  # of a and c: that the inputs end is not a time


WINDOWS = {
    "none": (None, "0"),
    "tumble": (TUMBLE, "ts - (ts % 60000 + 60000) % 60000"),
    "session": (SessionWindow(gap=20_000), None),
}


@pytest.mark.parametrize("kept", [True, False], ids=["kept rows", "accumulators"])
@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("name", WINDOWS)
def test_any_cut_gives_what_one_query_gives(running, name, each, kept):
    window, start = WINDOWS[name]
    given = {**COUNTS, "a": "avg(v)", "f": "first(v)", "t": "last(v)"}
    if kept:
        given["l"] = "list(v )"
    chance = random.Random(f"{name} {kept}")
    rows = [
        (
            n * 5_000 + chance.randint(-40_000, 0),
            chance.choice(["a", "b", None]),
            chance.choice([None, 1, 2, -5]),
        )
        for n in range(40)
    ]
    final = window is not None and each
    leaves = "closed" if final else "changes"
    run = running(aggregate_of(1, True, given, window, each=each, leaves=leaves), lateness=100_000)
    table = {}
    at = 0
    leaving = []
    while at < len(rows):
        cut = chance.randint(1, 12)
        leaving += run.batch(*rows[at : at + cut])
        at += cut
    leaving += run.end()
    for *key, _, values in leaving:
        assert not final or tuple(key) not in table
        table[tuple(key)] = values
    with duckdb.connect() as con:
        con.execute("CREATE TABLE r(n INTEGER, ts BIGINT, k VARCHAR, v INTEGER)")
        con.executemany(
            "INSERT INTO r VALUES (?, ?, ?, ?)", [(n, *row) for n, row in enumerate(rows)]
        )
        if start is None:
            con.execute(
                "CREATE TABLE s AS SELECT *, min(ts) OVER (PARTITION BY k, g) AS start FROM ("
                "SELECT *, sum(b) OVER (PARTITION BY k ORDER BY ts, n) AS g FROM (SELECT *, "
                "CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts, n) <= 20000 THEN 0 "
                "ELSE 1 END AS b FROM r))"
            )
        else:
            con.execute(f"CREATE TABLE s AS SELECT *, {start} AS start FROM r")
        calls = ", ".join(sql for sql in given.values())
        wanted = {
            (k, *([] if window is None else [str(begin)])): list(values)
            for k, begin, *values in con.sql(
                f"SELECT k, start, {calls} FROM (FROM s ORDER BY n) GROUP BY k, start"
            ).fetchall()
        }
    assert {key: values for key, values in table.items() if values is not None} == wanted
    assert window is None or run.entries == 0
