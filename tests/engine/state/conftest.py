"""A state in a temporary directory, and ways to make history in it."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pytest

from kaflow_engine.state.copies.copies import ready_copy
from kaflow_engine.state.copies.memory import MemoryState
from kaflow_engine.state.copies.open_copies import OpenCopies
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.copies.snapshots import complete_snapshot, prune_snapshots, take_snapshot
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, StateRecord
from kaflow_engine.state.log.changes import to_changes, write_changes
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import LocalStore

RECORD = StateRecord(
    state_id="s1",
    generation=1,
    partitions=1,
    created_ms=0,
    start={"t": {0: 5}},
    dimension_ends={},
    schemas={"t": {"a": "BIGINT"}},
    fingerprint="p1",
)
BATCH = BatchRecord(
    number=1,
    epoch=1,
    plan="p1",
    batch_time=10,
    watermark={},
    ranges={"t": {0: (5, 9)}},
    read_to_end=(("t", 0),),
    bounded_end=False,
)
COMMIT = CommitRecord(
    number=1, epoch=1, changes={}, watermark={"t": [1, 2]}, next_due={}, counters={"read": 4}
)

Puts = Mapping[bytes, bytes | None]


class History:
    """One partition `0-0` of a pipeline: what a driver and its tasks would do."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = LocalStore(root)
        self.log = BatchLog(self.store)
        if self.log.load_state() is None:
            self.log.create_state(RECORD)
        self.ref = StateRef("s1", 1)
        self.now: dict[int, dict[bytes, bytes]] = {0: {}}
        """What the state must be after each batch."""
        self.workers = cycle((OpenCopies(), OpenCopies()))
        """What keeps copies open, in turns."""

    def run(self, puts: Puts, epoch: int = 1) -> int:
        """Run a batch: log it, write its changes, commit it."""
        number = self.log.next_number()
        self.log.begin(replace(BATCH, number=number, epoch=epoch))
        changes = to_changes(list(puts), list(puts.values()))
        file = write_changes(self.store, self.ref, number, "0-0", epoch, changes)
        self.log.commit(replace(COMMIT, number=number, epoch=epoch, changes={"0-0": file}))
        state = MemoryState(self.now[number - 1])
        state.apply(changes)
        self.now[number] = state.entries()
        return number

    def copy(self, upto: int) -> RocksCopy:
        """Open the copy as a task does."""
        return ready_copy(self.root / "copies", "0-0", self.ref, upto, self.log, self.store)

    def read(self, upto: int) -> dict[bytes, bytes]:
        """Return what a task of the next batch would find."""
        with self.copy(upto) as copy:
            assert copy.applied == upto
            found = copy.range(b"", None)
            return dict(zip(found.keys, found.values, strict=True))

    def look(self, upto: int) -> dict[bytes, bytes]:
        """Return what the next worker would find."""
        about = self.root / "copies", "0-0", self.ref, upto, self.log, self.store
        with next(self.workers).reading(*about) as copy:
            assert copy.applied == upto
            found = copy.range(b"", None)
            assert copy.get(found.keys) == found.values
            asked = pa.array([*found.keys[::-1], b"none"], pa.binary())
            assert copy.read(asked).to_pylist() == [*found.values[::-1], None]
            return dict(zip(found.keys, found.values, strict=True))

    def snapshot(self, batch: int) -> None:
        """Take a complete snapshot and prune."""
        with self.copy(batch) as copy:
            digest = take_snapshot(self.store, self.ref, "0-0", copy)
        complete_snapshot(self.store, self.ref, batch, 0, {"0-0": digest})
        prune_snapshots(self.store, self.log, self.ref)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return a fresh state."""
    return History(tmp_path / "state")


@pytest.fixture
def record() -> StateRecord:
    """Return a state's record."""
    return RECORD


@pytest.fixture
def batch() -> BatchRecord:
    """Return the record of batch 1."""
    return BATCH


@pytest.fixture
def commit() -> CommitRecord:
    """Return the commit of batch 1."""
    return COMMIT


@pytest.fixture
def new_history() -> type[History]:
    """Return what makes a fresh state in a directory."""
    return History
