"""Looking at a state from the side: all kinds of entries, earlier batches, while a run goes on."""

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import chosen_sides, describe, state_sides
from kaflow_engine.runtime.maintenance.diff import differences
from kaflow_engine.runtime.maintenance.rescale import rescale
from kaflow_engine.runtime.maintenance.rows import StateTable
from kaflow_engine.runtime.maintenance.sizes import sizes
from kaflow_engine.runtime.maintenance.view import open_view
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.runtime.state_here import (
    MINUTE,
    OUTPUTS,
    START,
    StateHere,
    random_batches,
    record_table,
    state_plan,
)

pytestmark = pytest.mark.slow

EVENT = ("events", 0, 0, START, b"k", b'{"id": "u1", "n": 7}')
KEYLESS = ("events", 1, 0, START, b"k", b'{"id": "u1"}')
PAYMENT = ("payments", 0, 0, START + MINUTE, b"7", b'{"n": 7, "amount": 12.5}')
USER = ("users", 0, 0, START, b"u1", b'{"id": "u1", "tier": "gold"}')


def rows_of(view):
    """Return the rows of all sides but the index by due time, by side."""
    return {
        side.name: [
            {name: value for name, value in row.items() if name not in ("ts", "due")}
            for found in view.ranges(side.step, side.byte)
            for row in decode(view.moment.plan, side, found.keys, found.values).json_rows()
        ]
        for side in chosen_sides(view.moment.plan)
    }


KINDS = {
    "matches": (
        state_plan("payments", partitions=1, emission={"type": "final"}),
        [EVENT, PAYMENT],
        [{"key": "7", "record": "events[0]@0", "value": {"match": "payments[0]@0"}}],
    ),
    "keyless": (
        state_plan("payments", partitions=1, emission={"type": "final"}),
        [KEYLESS],
        [
            {
                "key": None,
                "record": "events[1]@0",
                "value": {"outcome": "waiting", "e.id": "u1", "e.n": None},
            }
        ],
    ),
    "emitted": (
        state_plan("users", partitions=1, on_dimension_update="reemit"),
        [EVENT, USER],
        [{"key": "u1", "record": "events[0]@0", "value": {"e.id": "u1", "e.n": 7}}],
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_a_step_keeps_of_its_own_is_decoded(tmp_path, name):
    plan, records, wanted = KINDS[name]
    here = StateHere(tmp_path, plan)
    here.run(record_table(records), START)
    with open_view(here.log, here.log.store) as view:
        found = rows_of(view)[name]
    amount = {"y.amount": 12.5} if name == "matches" else {}
    assert found == [{**row, "value": {**row["value"], **amount}} for row in wanted]


def test_every_side_is_described():
    for plan, _, _ in KINDS.values():
        said = [describe(side, plan) for side in state_sides(plan)]
        assert len(set(said)) == len(said)


def dimension(number):
    value = b'{"id": "u%d", "tier": "t"}' % number
    return record_table([("users", 0, number, START, b"u%d" % number, value)])


def test_an_earlier_batch_is_shown_with_the_partitions_it_had(tmp_path):
    here = StateHere(tmp_path, state_plan("users", partitions=2))
    for number in range(3):
        here.run(dimension(number), START)
    rescale(here.directory, here.log, here.log.store, 5, epoch=2, now=1)
    here.run(dimension(3), START)
    store = here.log.store
    with open_view(here.log, store, 2) as before, open_view(here.log, store) as after:
        assert (before.moment.plan.partitions, after.moment.plan.partitions) == (2, 5)
        assert [len(rows_of(view)["users"]) for view in (before, after)] == [2, 4]
        found = [(each.change, each.key) for each in differences(before, after)]
        assert sorted(found) == [("added", "u2"), ("added", "u3")]
    with open_view(here.log, store, 0) as view:
        assert rows_of(view)["users"] == []


class Meanwhile(LocalStore):
    """A store under which a run goes on when a snapshot is read from it for the first time."""

    def __init__(self, root, run) -> None:
        super().__init__(root)
        self._run = run

    def download(self, name, path):
        run, self._run = self._run, lambda: None
        run()
        return super().download(name, path)


def going_on(tmp_path):
    """A state with a snapshot, and a store under which two more make that one needless."""
    here = StateHere(tmp_path, state_plan("users", partitions=1))
    for number in range(2):
        here.run(dimension(number), START, snapshot=True)

    def run():
        for number in (2, 3):
            here.run(dimension(number), START, snapshot=True)

    return BatchLog(LocalStore(here.directory)), Meanwhile(here.directory, run)


def test_what_a_run_removes_meanwhile_is_looked_for_again(tmp_path):
    log, store = going_on(tmp_path)
    with open_view(log, store) as view:
        assert view.moment.batch == 4
        assert len(rows_of(view)["users"]) == 4


def test_a_batch_that_is_removed_meanwhile_is_told(tmp_path):
    log, store = going_on(tmp_path)
    with (
        pytest.raises(StateError, match="batch 2 is no longer there"),
        open_view(log, store, 2),
    ):
        pass


def test_the_states_of_several_chains(tmp_path):
    plan = state_plan("payments", "users", outputs=OUTPUTS, partitions=2)
    here = StateHere(tmp_path, plan)
    for records, at in random_batches(3, plan, 3, 16):
        here.run(records, at)
    with (
        open_view(here.log, here.log.store, at=2) as old,
        open_view(here.log, here.log.store) as new,
    ):
        assert {each.step for each in sizes(new)} == {1, 1001, 1002, 1003}
        assert new.moment.watermarks.keys() == {0, 1, 2}
        found = list(differences(old, new))
        places = [(each.step, each.side) for each in found]
        assert [step for step, _ in places] == sorted(step for step, _ in places)
        assert {step for step, _ in places} == {1, 1001, 1002, 1003}
        shown = StateTable()
        for side in chosen_sides(plan):
            for entries in new.ranges(side.step, side.byte):
                shown.add(new, side, decode(plan, side, entries.keys, entries.values), START)
        assert shown.rows == sum(each.entries for each in sizes(new) if each.side != "due")
