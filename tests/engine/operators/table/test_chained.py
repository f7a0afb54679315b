"""Tables behind tables: several joins, rows whose time is up, rows on which a reader fails."""

# pyright: basic

from dataclasses import replace

import pytest

from kaflow_engine.flow.edges import Rows
from kaflow_engine.flow.tables import Materialize
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import chosen_sides, describe
from kaflow_engine.operators.rows.layout import key_text
from tests.engine.operators.table.flows import (
    Running,
    Written,
    columns_of,
    flow,
    record,
    rekeyed,
    table,
    table_join,
)

pytestmark = pytest.mark.slow


def orders_people_places(each=True, retain=None):
    """Orders with the person of each, and the place of that: o.k = p._key, p.k = c._key."""
    orders, people, places = (
        table(n, alias, key="_key", each=each, retain=retain if alias == "p" else None)
        for n, alias in enumerate("opc", 1)
    )
    first = table_join(4, orders, people, [("o.k", "p._key")], "LEFT", "left", each)
    behind = rekeyed(5, first, "o._key", each=each)
    second = table_join(6, behind, places, [("p.k", "c._key")], "LEFT", "left", each)
    last = rekeyed(7, second, "o._key", each=each)
    return orders, people, places, first, behind, second, last


SHOWN = {"keys": ['"o._key"'], "shown": ["o.v", "p.v", "c.v"]}


@pytest.mark.parametrize("each", [True, False])
def test_a_change_goes_through_all_joins_behind_it(running, each):
    run = running(*orders_people_places(each), **SHOWN)
    assert run.batch(record("o", (0, "ann", 1), key="7", ts=1)) == [(["7"], 1, [1, None, None])]
    found = run.batch(
        record("c", (0, None, 3), key="rome", ts=2), record("p", (0, "rome", 2), key="ann", ts=3)
    )
    assert found == [(["7"], 3, [1, 2, 3])]
    assert run.batch(record("c", None, key="rome", ts=4)) == [(["7"], 3, [1, 2, None])]
    assert run.batch(record("o", (0, "bob", 1), key="7", ts=5)) == [(["7"], 5, [1, None, None])]
    assert run.batch(record("p", None, key="ann", ts=6)) == []
    assert run.batch(record("o", None, key="7", ts=7)) == [(["7"], 7, None)]
    assert run.entries == 0


def test_each_record_makes_at_most_one_change_of_a_row(running):
    run = running(*orders_people_places(), **SHOWN)
    found = run.batch(
        record("o", (0, "ann", 1), key="7", ts=1),
        record("p", (0, "rome", 2), key="ann", ts=2),
        record("c", (0, None, 3), key="rome", ts=3),
        record("o", (0, "bob", 4), key="7", ts=4),
        record("o", None, key="7", ts=5),
    )
    assert found == [
        (["7"], 1, [1, None, None]),
        (["7"], 2, [1, 2, None]),
        (["7"], 3, [1, 2, 3]),
        (["7"], 4, [4, None, None]),
        (["7"], 5, None),
    ]


def test_a_row_whose_time_is_up_leaves_the_rows_that_it_is_in(running):
    run = running(*orders_people_places(retain=100), **SHOWN)
    run.batch(
        record("o", (0, "ann", 1), key="7", ts=1),
        record("p", (0, "rome", 2), key="ann", ts=2),
        at=50,
    )
    run.batch(at=103)
    both = run.batch(record("p", (0, "rome", 3), key="ann", ts=103), at=104)
    assert both == [(["7"], 2, [1, None, None]), (["7"], 103, [1, 3, None])]


def failing(each=True):
    """Orders and people, joined over a number that is in a text."""
    orders, people = (table(n, alias, key="_key", each=each) for n, alias in enumerate("op", 1))
    join = table_join(3, orders, people, [("o.k", "p.k")], "LEFT", "pair", each)
    left, right = (
        replace(side, key=key_text([(f'CAST("{alias}.k" AS INTEGER)', "INTEGER")]))
        for side, alias in zip(join.sides, "op", strict=True)
    )
    join = replace(join, left=left, right=right)
    return orders, people, join, rekeyed(4, join, "o._key", "p._key", each=each)


@pytest.mark.parametrize("each", [True, False])
def test_a_row_whose_join_key_fails_is_as_if_there_were_none(running, each):
    run = running(*failing(each), shown=["o.v", "p.v"])
    run.batch(record("o", (0, "7", 1), key="a", ts=1), record("p", (0, "07", 2), key="b", ts=2))
    assert Written(run.batch(record("p", (0, "x", 3), key="b", ts=3))) == [
        (["a", "b"], 3, None),
        (["a", None], 1, [1, None]),
    ]
    ((phase, message, value),) = run.letters
    assert (phase, value) == ("sql", None)
    assert message.startswith("row (_key = b): ")
    assert Written(run.batch(record("p", (0, "7", 4), key="b", ts=4))) == [
        (["a", None], 4, None),
        (["a", "b"], 4, [1, 4]),
    ]
    assert run.batch(record("o", (0, "y", 5), key="a", ts=5)) == [(["a", "b"], 5, None)]


def test_changes_get_another_key_in_which_null_is_a_value():
    given = table(1, "a")
    other = Materialize(
        id="rekeyed:1",
        state=202,
        rows=Rows(input=given.id, key=None),
        columns=columns_of(given),
        keys=((columns_of(given)[1], '"a.k"'),),
        deletes=None,
        operation=None,
        each=True,
        retain=None,
    )
    run = Running(flow(given, other), shown=["a.v"])
    assert run.batch(record("a", (1, None, 5))) == [([None], 0, [5])]
    assert run.batch(record("a", (1, "x", 5))) == [([None], 0, None), (["x"], 0, [5])]


def test_a_redriven_record_is_seen_by_all_tables_of_its_chain(running):
    orders, people = table(1, "a", "t"), table(2, "b", "t")
    join = table_join(3, orders, people, [("a.k", "b.k")], "INNER", "pair")
    behind = rekeyed(4, join, "a.id", "b.id")
    other = table(1, "z", "t", chain=1)
    run = running(other, orders, people, join, behind, shown=["a.v", "b.v"])
    again = record("t", (1, "x", 5))
    marks = {"kaflow.redrive": b"1:p", "kaflow.chain": b"out"}
    headers = [{"key": name, "value": value} for name, value in marks.items()]
    assert run.batch({**again, "headers": headers}) == [(["1", "1"], 0, [5, 5])]
    assert run.counts() == {"read": 1, "used": 1}


def test_a_look_into_the_state_shows_rows_by_sides(running):
    run = running(*orders_people_places(retain=100), **SHOWN)
    run.batch(
        record("o", (0, "ann", 1), key="7", ts=1),
        record("o", (0, None, 2), key="8", ts=2),
        record("p", (0, "rome", 2), key="ann", ts=3),
    )
    found = {}
    for side in chosen_sides(run.flow):
        for part in range(run.flow.partitions):
            entries = run.pipeline._world.state((side.step, part)).range(b"\0", None)
            mine = [i for i, key in enumerate(entries.keys) if key[1] == side.byte]
            if mine:
                keys, values = ([of[i] for i in mine] for of in (entries.keys, entries.values))
                rows = decode(run.flow, side, keys, values).json_rows()
                found.setdefault((side.step, side.name), []).extend(rows)
    (people,) = found[202, "p"]
    assert people == {
        "key": '["ann"]',
        "record": None,
        "ts": 3,
        "due": 103,
        "value": {"p.id": 0, "p.k": "rome", "p.v": 2, "p._key": "ann"},
    }
    (left,) = found[204, "left"]
    assert (left["key"], left["value"]["row"], left["value"]["o.v"]) == ("ann", '["7"]', 1)
    (alone,) = found[204, "left without key"]
    assert (alone["key"], alone["value"]["row"]) == (None, '["8"]')
    assert {side.name: describe(side, run.flow) for side in chosen_sides(run.flow)} == {
        "o": "rows of table 'o'",
        "p": "rows of table 'p'",
        "c": "rows of table 'c'",
        "table": "rows of a joined table",
        "left": "rows of the left table",
        "left without key": "rows of the left table without a join key",
        "right": "rows of the right table",
    }
