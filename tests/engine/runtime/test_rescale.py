"""A state with another number of partitions: the same entries, and the same rows ever after."""

import shutil
from collections import Counter
from math import inf

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.graph import joins, state_names
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.runtime.maintenance.rescale import rescale
from kaflow_engine.runtime.takeover.restore import RESTORED
from kaflow_engine.state.copies.copies import ready_copy
from kaflow_engine.state.copies.snapshots import snapshot_batches
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.copy_location import COPIES
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.runtime.state_here import OUTPUTS, StateHere, random_batches, state_plan

pytestmark = pytest.mark.slow

SMART = {"type": "smart", "require": ["tier"], "on_expiry": "emit"}
PLANS = {
    "rows that part": state_plan("payments", "users", emission=SMART, partitions=3),
    "one decision": state_plan("payments", emission={"type": "final"}, partitions=4),
    "formed again": state_plan("users", on_dimension_update="reemit", partitions=4),
    "without state": state_plan(),
    "three chains": state_plan("payments", "users", outputs=OUTPUTS, partitions=3),
}
PARTITIONS = {1: 5, 3: 2}
"""How many there shall be before which batch."""
CRASHED = state_plan("users", emission=SMART, partitions=2)


def entries_of(here: StateHere) -> list[dict[bytes, bytes]]:
    """Return all entries, by step."""
    found = []
    for step in state_names(here.plan):
        entries = {}
        for part in range(here.state.partitions):
            name = f"{step}-{part}"
            with ready_copy(
                here.directory / COPIES,
                name,
                here.state.ref,
                here.standing.batch,
                here.log,
                here.log.store,
            ) as copy:
                kept = copy.range(b"", None)
                entries |= dict(zip(kept.keys, kept.values, strict=True))
        found.append(entries)
    return found


def do(here: StateHere, partitions: int, store=None):
    store = store or here.log.store
    try:
        return rescale(here.directory, BatchLog(store), store, partitions, epoch=9, now=1)
    finally:
        here.log.load_state()


def test_the_plans_have_what_can_go_wrong():
    assert any(chain.ledger for plan in PLANS.values() for chain in chains(plan))
    assert {len(joins(plan)) for plan in PLANS.values()} == {0, 1, 2, 3}
    assert state_names(PLANS["three chains"]) == (1, 1001, 1002, 1003)


@pytest.mark.parametrize(("seed", "name"), list(enumerate(PLANS)))
def test_entries_and_rows_are_those_of_a_state_that_kept_its_partitions(tmp_path, name, seed):
    plan = PLANS[name]
    broken, unbroken = (StateHere(tmp_path / way, plan) for way in ("broken", "unbroken"))
    for number, (records, at) in enumerate(random_batches(seed, plan, 4, 20, 14)):
        if number in PARTITIONS:
            before = entries_of(broken)
            done = do(broken, PARTITIONS[number])
            assert entries_of(broken) == before
            assert sum(map(len, before)) == done.entries
        if number == 3:
            shutil.rmtree(broken.directory / COPIES, ignore_errors=True)
        broken.run(records, at, snapshot=number in (1, 2))
        unbroken.run(records, at)
    assert_same(broken, unbroken)
    assert len(broken.output) > 3
    assert (broken.state.generation, broken.state.partitions) == (3, 2)


def assert_same(broken: StateHere, unbroken: StateHere) -> None:
    """Both have sent the same, counted the same, and keep the same but for numbers of batches."""
    assert broken.output == unbroken.output
    assert broken.standing.counters == unbroken.standing.counters
    assert broken.standing.watermark == unbroken.standing.watermark
    assert list(map(set, entries_of(broken))) == list(map(set, entries_of(unbroken)))


class Stopped(Exception):
    """The process ends here."""


class FrailStore(LocalStore):
    """A store behind whose n-th change the process ends."""

    def __init__(self, root, at: float = inf) -> None:
        super().__init__(root)
        self.done: list[str] = []
        self._at = at

    def __getattribute__(self, name: str):
        found = super().__getattribute__(name)
        if name not in ("create", "put", "delete", "upload", "copy"):
            return found

        def change(*arguments):
            self.done.append(next(a for a in reversed(arguments) if isinstance(a, str)))
            result = found(*arguments)
            if len(self.done) == self._at:
                raise Stopped
            return result

        return change


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A state behind four batches, what follows, and what a run in peace makes of it."""
    root = tmp_path_factory.mktemp("made")
    batches = random_batches(5, CRASHED, 5)
    unbroken = StateHere(root / "unbroken", CRASHED)
    for number, (records, at) in enumerate(batches):
        if number == 4:
            shutil.copytree(root / "unbroken", root / "made")
            rows = {key: list(values) for key, values in unbroken.output.items()}
        unbroken.run(records, at, snapshot=number == 3)
    return root / "made", rows, batches[4:], unbroken


def steps_of(made, tmp_path) -> list[str]:
    """Return what a rescale changes in the store, in order."""
    shutil.copytree(made[0], tmp_path / "counted")
    here = StateHere(tmp_path / "counted", CRASHED)
    store = FrailStore(here.directory)
    do(here, 3, store)
    return store.done


def test_a_rescale_that_was_interrupted_leaves_the_old_state_or_the_new(made, tmp_path):
    folder, rows, rest, unbroken = made
    names = steps_of(made, tmp_path)
    *_, manifest, batch, commit, plan, state = range(1, len(names) + 1)
    assert names[-5:-2] == ["snapshots/5/manifest.json", "batches/5.json", "commits/5.json"]
    assert names[-1] == "state.json"
    seen = Counter()
    runs_on = [len(names) // 2, manifest, batch, commit]
    is_called_again = [1, batch, plan, state]
    for number, again in [*((n, False) for n in runs_on), *((n, True) for n in is_called_again)]:
        root = tmp_path / f"{number}-{again}"
        shutil.copytree(folder, root)
        here = StateHere(root, CRASHED)
        before = entries_of(here)
        with pytest.raises(Stopped):
            do(here, 3, FrailStore(here.directory, number))
        seen[here.state.partitions] += 1
        assert entries_of(here) == before
        if again:
            assert do(here, 3).before == (3 if number == state else 2)
            assert entries_of(here) == before
        elif (begun := here.log.open_batch()) is not None:
            here.finish(begun, RECORDS.empty_table())
        assert here.log.open_batch() is None
        here.output.update({key: list(values) for key, values in rows.items()})
        for records, at in rest:
            here.run(records, at, snapshot=True)
        assert_same(here, unbroken)
    assert seen == {2: 7, 3: 1}


def test_what_an_interrupted_rescale_left_is_not_taken_for_a_snapshot(made, tmp_path):
    folder, _, rest, _ = made
    shutil.copytree(folder, tmp_path / "state")
    here = StateHere(tmp_path / "state", CRASHED)
    names = steps_of(made, tmp_path)
    at = names.index("snapshots/5/manifest.json") + 1
    with pytest.raises(Stopped):
        do(here, 3, FrailStore(here.directory, at))
    here.run(*rest[0])
    do(here, 3)
    assert snapshot_batches(here.log.store) == [6, 4]


def test_an_open_batch_that_reads_records_is_refused(made, tmp_path):
    folder, _, rest, _ = made
    shutil.copytree(folder, tmp_path / "state")
    here = StateHere(tmp_path / "state", CRASHED)
    here.begin(*rest[0])
    with pytest.raises(StateError, match="batch 5 of pipeline 'shop' was begun and is not done"):
        do(here, 3)
    assert here.state.partitions == 2


def test_a_state_that_was_just_restored_is_refused(made, tmp_path):
    shutil.copytree(made[0], tmp_path / "state")
    here = StateHere(tmp_path / "state", CRASHED)
    here.log.store.put(RESTORED, b"{}")
    with pytest.raises(StateError, match="was restored, and has not been run since"):
        do(here, 3)


def test_an_open_batch_without_effect_is_finished(made, tmp_path):
    folder, _, _, _ = made
    shutil.copytree(folder, tmp_path / "state")
    here = StateHere(tmp_path / "state", CRASHED)
    here.begin(RECORDS.empty_table(), here.standing.batch_time)
    assert do(here, 3).batch == 6


def test_a_state_without_batches_has_nothing_to_move(tmp_path):
    here = StateHere(tmp_path, CRASHED)
    assert do(here, 5).entries == 0
    assert (here.state.partitions, here.state.generation) == (5, 2)
    here.run(*random_batches(1, CRASHED, 1)[0])
    assert entries_of(here) != [{}]


@pytest.mark.parametrize("partitions", [0, 257])
def test_there_are_1_to_256_partitions(tmp_path, partitions):
    with pytest.raises(StateError, match=f"1 to 256 partitions, not {partitions}"):
        do(StateHere(tmp_path, CRASHED), partitions)
