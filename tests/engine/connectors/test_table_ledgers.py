"""Tables with a ledger beside them, each over its server: fences, other batches, keys."""
# pyright: basic

from dataclasses import replace

import pytest

from kaflow_engine.connectors.contract import FinishedBatch, Owner
from kaflow_engine.errors import StateError, TakenOver
from tests.engine.connectors import clickhouse_here, postgres_here
from tests.engine.connectors.typed_output_here import OWNER

pytestmark = pytest.mark.slow

TABLES = {"postgres": postgres_here.Table, "clickhouse": clickhouse_here.Table}
NEWER = replace(OWNER, epoch=2)


@pytest.fixture(params=TABLES)
def made(request, unique):
    """Makes a table of a new name."""
    server = request.getfixturevalue(request.param)
    return lambda **about: TABLES[request.param](server, unique, **about)


def test_a_run_that_was_replaced_adds_nothing(made):
    table = made()
    table.begin()
    table.write(1, ("a", ["a", "1"]))
    assert table.begin(NEWER).delivered(1)
    with pytest.raises(TakenOver):
        table.write(2, ("b", ["b", "2"]))  # a task of the older run wakes up
    with pytest.raises(TakenOver):
        table.begin()
    table.write(2, ("c", ["c", "3"]), owner=NEWER)
    assert table.rows("k, n") == [("a", 1), ("c", 3)]


def test_another_state_takes_over_only_where_it_is_handed(made):
    table, other = made(), Owner(state="t", generation=1)
    table.begin()
    table.write(1, ("a", ["a", "1"]))
    held = {(each.state, each.batch, each.mark) for each in table.look(other)}
    assert held == {("s", 1, "m")}
    table.hand_over(other)
    with pytest.raises(TakenOver):
        table.write(2, ("b", ["b", "2"]))
    assert not table.begin(replace(other, epoch=1)).delivered(1)


def test_another_batch_of_that_number_is_refused(made):
    table = made()
    table.begin()
    table.write(1, ("a", ["a", "1"]))
    with pytest.raises(StateError, match="another copy of the state was run"):
        table.write(1, ("a", ["a", "1"]), mark="other")
    again = table.begin(NEWER)
    notes = table.write(1, ("a", ["a", "1"]), ("b", ["b", "1"]), owner=NEWER).notes
    with pytest.raises(StateError, match="has written 1 rows"):
        again.commit(FinishedBatch(number=1, mark="m", notes=notes))
    again.commit(FinishedBatch(number=1, mark="m", notes=notes, same_rows=False))
    assert table.rows("k, n") == [("a", 1)]


def test_slots_are_noted_one_by_one(made):
    table = made()
    table.begin()
    table.write(1, ("a", ["a", "1"]), slot=3)
    table.write(1, ("b", ["b", "2"]), slot=5)  # another task of the batch
    table.write(1, ("a", ["a", "1"]), slot=3)
    assert table.rows("k, n") == [("a", 1), ("b", 2)]


def test_a_key_that_is_null_is_refused(made):
    table = made(key="k", changes=True)
    table.begin()
    (refused,) = table.write(1, (None, [None, "1"]), ("b", ["b", "2"])).refused
    assert (refused.row, refused.message) == (0, "column 'k' is the key, and NULL")
    assert table.write(2, (None, None)).refused == ()  # it never came
    assert table.rows("k, n") == [("b", 2)]
