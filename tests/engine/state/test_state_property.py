import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaflow_engine.state.copies.memory import MemoryState
from kaflow_engine.state.copies.pending import PendingState
from kaflow_engine.state.copies.rocks_open import open_copy
from kaflow_engine.state.log.changes import to_changes
from kaflow_engine.state.reader import StateReader, StateRef
from tests.property.seeds import ALL

KEYS = st.binary(min_size=1, max_size=4).map(
    lambda key: bytes(b"\x00a\x7f\xff"[i % 4] for i in key)
)
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=3)), max_size=12)
PROBES = st.lists(st.binary(max_size=0) | KEYS, max_size=6)
ACTIONS = st.one_of(
    CHANGES.map(lambda rows: ("run", rows)),
    st.sampled_from(["crash", "drop", "swap", "keep", "snapshot", "replay", "write"]).map(
        lambda a: (a, [])
    ),
)

often = settings(max_examples=80 if ALL else 30, deadline=None, database=None)
seldom = settings(
    max_examples=8,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def reads(state: StateReader, probes: list[bytes]) -> list[Any]:
    keys = [probe for probe in probes if probe]
    ranges = [state.range(a, b) for a in probes for b in (*probes, None)]
    ranges += [state.range(a, None, most) for a in probes for most in (0, 1, 3)]
    return [state.get(keys), state.scan(probes), *ranges]


def check_reads(batches: list[list[tuple[bytes, bytes | None]]], probes: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        memory, applied = MemoryState(), []
        with open_copy(Path(folder) / "c", StateRef("s", 1)) as copy:
            for number, rows in enumerate(batches, 1):
                changes = to_changes([key for key, _ in rows], [value for _, value in rows])
                memory.apply(changes)
                pending = PendingState(copy)
                pending.apply(changes)
                assert reads(memory, probes) == reads(pending, probes)
                pending = PendingState(MemoryState())
                for earlier in (*applied, changes):
                    pending.apply(earlier)
                assert reads(memory, probes) == reads(pending, probes)
                applied.append(changes)
                copy.apply(changes, number)
                assert reads(memory, probes) == reads(copy, probes)
            memory = MemoryState(memory.entries())
        with open_copy(Path(folder) / "c", StateRef("s", 1)) as copy:
            assert reads(memory, probes) == reads(copy, probes)


def check_history(history: Any, actions: list[tuple[str, list[Any]]]) -> None:
    """Whatever happens to the copy, a task finds the state after the batch before."""
    copies, kept = history.root / "copies", history.root / "kept"
    for action, rows in actions:
        last = history.log.next_number() - 1
        if action == "run":
            assert history.look(last) == history.now[last]
            history.run(dict(rows))
        elif action == "write":
            assert history.read(last) == history.now[last]
        elif action == "drop":
            shutil.rmtree(copies, ignore_errors=True)
        elif action == "keep" and copies.exists():
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(copies, kept)
        elif action == "swap" and kept.exists():
            shutil.rmtree(copies, ignore_errors=True)
            shutil.copytree(kept, copies)
        elif action == "crash":
            with history.copy(last):  # copied while open: what a killed process leaves
                shutil.copytree(copies, history.root / "crashed")
            shutil.rmtree(copies)
            (history.root / "crashed").rename(copies)
        elif action == "snapshot" and last:
            history.snapshot(last)
        elif action == "replay" and last and history.store.exists(f"commits/{last - 1}.json"):
            assert history.look(last - 1) == history.now[last - 1]
    last = history.log.next_number() - 1
    for read in (history.look, history.look, history.read):
        assert read(last) == history.now[last]


@seldom
@given(batches=st.lists(CHANGES, min_size=1, max_size=4), probes=PROBES)
def test_memory_and_rocks_agree(batches: list[Any], probes: list[bytes]):
    check_reads(batches, probes)


@seldom
@given(actions=st.lists(ACTIONS, max_size=8))
def test_state_survives_what_happens_to_its_copy(new_history: Any, actions: list[Any]):
    with tempfile.TemporaryDirectory() as folder:
        check_history(new_history(Path(folder)), actions)


@pytest.mark.slow
@often
@given(batches=st.lists(CHANGES, min_size=1, max_size=6), probes=PROBES)
def test_memory_and_rocks_agree_often(batches: list[Any], probes: list[bytes]):
    check_reads(batches, probes)


@pytest.mark.slow
@settings(often, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, max_size=20))
def test_state_survives_what_happens_to_its_copy_often(new_history: Any, actions: list[Any]):
    with tempfile.TemporaryDirectory() as folder:
        check_history(new_history(Path(folder)), actions)
