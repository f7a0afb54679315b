"""Entries that fall due, against a dictionary of them."""
# pyright: basic

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.state.copies.memory import MemoryState
from kaflow_engine.state.keys import DUE, entry_key
from kaflow_engine.state.log.changes import last_per_key

pytestmark = pytest.mark.slow

PARTITIONS = 4


class Task:
    """Changes are seen from the next batch on."""

    def __init__(self) -> None:
        self.partitions: Sequence[int] = range(PARTITIONS)
        self.states = [MemoryState() for _ in range(PARTITIONS)]
        self.written: list[tuple[int, pa.Table]] = []

    def state(self, step: int, partition: int) -> MemoryState:
        return self.states[partition]

    def write_changes(self, step: int, partition: int, changes: pa.Table) -> None:
        self.written.append((partition, last_per_key(changes)))

    def commit(self) -> None:
        for partition, changes in self.written:
            self.states[partition].apply(changes)
        self.written = []

    def entries(self) -> dict[bytes, bytes]:
        return {k: v for state in self.states for k, v in state.entries().items()}


def new_entries(rng: random.Random, number: int, count: int) -> list[bytes]:
    shards = rng.choice([1, 5, 256])
    return [
        entry_key(bytes((rng.randrange(shards),)) + b"k", 3, b"%d-%d" % (number, n))
        for n in range(count)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_each_entry_falls_due_once_and_in_time(seed: int):
    rng = random.Random(seed)
    task, known, horizon, end = Task(), {}, 0, 12
    for number in range(end):
        state = StepState(task, 1, PARTITIONS)
        horizon = 1 << 70 if number == end - 1 else horizon + rng.choice([0, 1, 50, 400])
        before = dict(known)
        found: list[tuple[int, bytes]] = []
        for part in state.due(horizon):
            found += part
            late = [entry for _, entry in part if number < end - 1 and rng.random() < 0.2]
            state.remove([entry for _, entry in part if entry not in late])
            for entry in late:
                known[entry] = horizon + rng.randrange(300)
                state.postpone(entry, known[entry])
        assert sorted(found) == sorted((at, e) for e, at in before.items() if at < horizon)
        known = {entry: at for entry, at in known.items() if at >= horizon}
        if number < end - 1:
            for count in (0, rng.choice([1, 30, 1500])):
                fresh = new_entries(rng, 2 * number + (count > 0), count or 3)
                times = [horizon + rng.randrange(rng.choice([1, 500])) for _ in fresh]
                known.update(zip(fresh, times, strict=True))
                names = pa.array(fresh, pa.binary())
                values = pa.array([b"v"] * len(fresh), pa.binary())
                if count:
                    state.put_until(names, values, np.array(times), mixed=rng.random() < 0.5)
                else:
                    state.change(names, values, np.array(times))
        soonest = state.write()
        task.commit()
        assert soonest is None or soonest <= min(known.values())
        assert {key for key in task.entries() if key[1] != DUE} == known.keys()
    assert task.entries() == {}


def test_the_earliest_due_time_is_known_without_a_look():
    task = Task()
    state = StepState(task, 1, PARTITIONS)
    names = [entry_key(bytes((n, 1)), 3, b"") for n in range(9)]
    state.put_until(pa.array(names), pa.array([b"v"] * 9), np.arange(9) + 5, mixed=True)
    assert state.write() == 5
    task.commit()
    after = StepState(task, 1, PARTITIONS)
    assert sorted(at for part in after.due(8) for at, _ in part) == [5, 6, 7]
    assert after.write() == 8


def test_a_window_is_found_by_its_due_time():
    task = Task()
    state = StepState(task, 1, PARTITIONS)
    names = [entry_key(b"\x01a", 3, bytes((n,))) for n in range(9)]
    times = np.array([5] * 4 + [9] * 5)
    state.put_until(pa.array(names), pa.array([b"v"] * 9), times, mixed=False)
    state.write()
    task.commit()
    after = StepState(task, 1, PARTITIONS)
    assert [after.has_due(at, at) for at in range(4, 11)] == [at in (5, 9) for at in range(4, 11)]


def test_every_read_sees_what_is_shown_of_the_batch_that_runs():
    key = b"\x05k"
    state = StepState(Task(), 1, PARTITIONS)
    state.put(entry_key(key, 3, b"x"), b"1", due=7)

    def reads():
        return (
            state.values([entry_key(key, 3, b"x")]),
            state.entries(3, [key]),
            state.few(3, [key], [2]),
            state.has(3),
            state.has_due(7, 7),
        )

    assert reads() == ([None], ([], [], []), [[]], False, False)
    state.show_changes()
    assert reads() == ([b"1"], ([0], [b"x"], [b"1"]), [[b"x"]], True, True)
    assert state.write() == 7
