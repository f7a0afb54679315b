"""Tables of topics: the last record of a key is its row, and changes of content leave."""

# pyright: basic

import pytest

from tests.engine.operators.table.flows import record, table

pytestmark = pytest.mark.slow


def a(row, **more):
    return record("a", row, **more)


def names(*found):
    """SQL names of columns of the table."""
    return [f"a.{name}" for name in found]


V = names("v")


@pytest.mark.parametrize("each", [True, False])
def test_a_record_replaces_the_one_before(running, each):
    run = running(table(1, "a", each=each), shown=V)
    assert run.batch(a((1, "x", 5), ts=10), a((2, "x", 6), ts=20)) == [
        (["1"], 10, [5]),
        (["2"], 20, [6]),
    ]
    assert run.batch(a((1, "x", 7), ts=30)) == [(["1"], 30, [7])]
    assert run.batch(a((1, "x", 7), ts=40)) == []  # an equal row is no change
    assert run.batch(a((1, "x", 8), ts=5)) == [(["1"], 40, [8])]  # time does not go back
    assert run.counts() == {"read": 5, "used": 5}


def test_several_records_of_a_key_in_one_batch_are_several_changes_or_one(running):
    given = [a((1, "x", n), ts=n) for n in (5, 5, 6, 7)]
    run = running(table(1, "a"), shown=V)
    assert run.batch(*given) == [(["1"], n, [n]) for n in (5, 6, 7)]
    run = running(table(1, "a", each=False), shown=V)
    assert run.batch(*given) == [(["1"], 7, [7])]
    assert run.batch(a((1, "x", 8), ts=8), a((1, "x", 7), ts=9)) == []
    assert run.batch(a((1, "x", 9), ts=10)) == [(["1"], 10, [9])]


@pytest.mark.parametrize("each", [True, False])
def test_a_null_value_deletes_by_the_kafka_key(running, each):
    run = running(table(1, "a", key="_key", each=each), shown=V)
    run.batch(a((1, "x", 5), ts=10, key="ä"), a((2, "x", 6), ts=10, key="b"))
    assert run.entries == 2
    assert run.batch(a(None, ts=20, key="ä"), a(None, ts=20, key="c")) == [(["ä"], 20, None)]
    assert run.entries == 1
    assert run.batch(a((1, "x", 5), ts=15, key="ä")) == [(["ä"], 15, [5])]
    both = run.batch(a((1, "x", 4), ts=16, key="ä"), a(None, ts=17, key="ä"))
    assert both == ([(["ä"], 16, [4])] if each else []) + [(["ä"], 17, None)]
    assert run.batch(a((3, "x", 4), key="d"), a(None, key="d")) == (
        [(["d"], 0, [4]), (["d"], 0, None)] if each else []
    )
    assert run.counts() == {"read": 9, "used": 9}


def test_records_without_a_key_are_dropped_and_counted(running):
    run = running(table(1, "a", key="_key"), shown=V)
    assert run.batch(a((1, "x", 5)), a(None), a((1, "x", 6), key="b")) == [(["b"], 0, [6])]
    assert run.counts() == {"read": 3, "used": 1, "skipped": 2, "null_key": 2}
    run = running(table(1, "a", key=("k", "id")), shown=V)
    assert run.batch(a((1, None, 5)), a((1, "x", 6), key="b"), a(None, key="b")) == [
        (["x", "1"], 0, [6])
    ]
    assert run.counts() == {"read": 3, "used": 1, "skipped": 2, "null_key": 1}


def test_a_key_that_is_no_text_deletes_nothing_and_is_a_dead_letter(running):
    run = running(table(1, "a", key="_key"), shown=V)
    bad = {**a(None), "key": b"\xff"}
    assert run.batch(a((1, "x", 5), key="b"), bad) == [(["b"], 0, [5])]
    assert run.letters == [("decode", "the key is no UTF-8", None)]
    assert run.counts() == {"read": 2, "used": 1, "dead_letter": 1}


@pytest.mark.parametrize("each", [True, False])
def test_a_row_that_stops_passing_the_filter_is_deleted(running, each):
    run = running(table(1, "a", where='"a.v" > 5', each=each), shown=V)
    assert run.batch(a((1, "x", 5)), a((2, "x", 6))) == [(["2"], 0, [6])]
    assert run.batch(a((1, "x", 7)), a((2, "x", None), ts=3)) == [(["1"], 0, [7]), (["2"], 3, None)]
    assert run.entries == 1
    assert run.counts() == {"read": 4, "used": 2, "filtered": 2}


def test_a_record_on_which_the_filter_fails_is_as_if_there_were_no_row(running):
    run = running(table(1, "a", where='CAST("a.k" AS INTEGER) > 0'), shown=V)
    run.batch(*(a((n, "1", n)) for n in range(6)))
    assert run.batch(a((1, "x", 1), ts=8), a((2, "1", 2), ts=8), a((3, "y", 3), ts=9)) == [
        (["1"], 8, None),
        (["3"], 9, None),
    ]
    assert [(phase, value) for phase, _, value in run.letters] == [
        ("sql", b'{"id": 1, "k": "x", "v": 1}'),
        ("sql", b'{"id": 3, "k": "y", "v": 3}'),
    ]
    assert run.counts() == {"read": 9, "used": 7, "dead_letter": 2}


OPERATION = (
    "CASE (\"a._headers\"['op']::VARCHAR) WHEN 'd' THEN 'd' WHEN 'u' THEN 'u' "
    "ELSE error('unknown operation') END"
)
"""Of a header; an unknown one fails."""


def test_operations_delete_by_the_columns(running):
    run = running(table(1, "a", operation=OPERATION, where='10 / "a.v" > 1'), shown=V)
    assert run.batch(a((1, "x", 5), op="u"), a((2, "x", 6), op="u")) == [
        (["1"], 0, [5]),
        (["2"], 0, [6]),
    ]
    assert run.batch(a((1, None, None), ts=4, op="d"), a((7, "x", 7), op="d")) == [(["1"], 4, None)]
    assert run.counts() == {"read": 4, "used": 4}
    assert run.batch(a((2, "x", 9), op="z")) == []  # a bad record changes nothing
    assert run.letters[0][0] == "sql"
    assert run.batch(a((2, "x", 6), op="u")) == []


@pytest.mark.parametrize("each", [True, False])
def test_rows_that_nothing_changes_are_deleted_in_time(running, each):
    run = running(table(1, "a", retain=100, each=each), shown=V)
    assert len(run.batch(a((1, "x", 1), ts=0), a((2, "x", 2), ts=50), at=0)) == 2
    assert run.batch(a((1, "x", 1), ts=70), at=150) == []  # an equal one prolongs
    assert run.batch(at=151) == []
    assert run.batch(a((2, "x", 3), ts=151), at=152) == (
        [(["2"], 50, None), (["2"], 151, [3])] if each else [(["2"], 151, [3])]
    )
    assert run.batch(at=171) == []
    assert run.batch(at=172) == [(["1"], 70, None)]
    assert run.end() == []
    assert run.batch(at=900) == []


def test_rows_leave_by_when_they_fell_due_then_by_key(running):
    run = running(table(1, "a", retain=100), shown=V, partitions=1)
    run.batch(*(a((n, "x", n), ts=ts) for n, ts in ((11, 5), (9, 5), (100, 4))), at=0)
    run.batch(at=200)
    assert [key for key, _, _ in run.batch(at=201)] == [["100"], ["9"], ["11"]]
    assert run.entries == 0


def test_records_count_in_the_order_of_their_times(running):
    run = running(table(1, "a"), shown=V)
    given = [a((1, "x", 1), ts=20), a((1, "x", 2), ts=10, partition=1)]
    assert run.batch(*given) == [(["1"], 10, [2]), (["1"], 20, [1])]
    assert run.batch(a((1, "x", 3), ts=10)) == [(["1"], 20, [3])]


def test_two_tables_of_a_topic_have_rows_and_letters_of_their_own(running):
    where = 'CAST("b.k" AS INTEGER) > 0'
    run = running(table(1, "a", "t"), table(1, "b", "t", chain=1, where=where), shown=None)
    run.batch(record("t", (1, "1", 5)), record("t", (2, "x", 6)), record("t", (3, "-1", 6)))
    assert [value for _, _, value in run.letters] == [b'{"id": 2, "k": "x", "v": 6}']
    assert run.counts() == {"read": 6, "used": 4, "filtered": 1, "dead_letter": 1}
