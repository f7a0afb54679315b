import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies import copies
from kaflow_engine.state.copies.copies import ready_copy
from kaflow_engine.state.copies.rocks_open import open_copy
from kaflow_engine.state.copies.snapshots import snapshot_batches
from kaflow_engine.state.reader import StateRef

pytestmark = pytest.mark.slow

History = Any  # of conftest.py, which cannot be imported by name


def make(history: History, batches: int) -> None:
    for _ in range(batches):
        number = history.log.next_number()
        history.run({b"n": b"%d" % number, b"k%d" % number: b"v", b"k%d" % (number - 2): None})


def test_the_state_is_that_after_the_batch_before(history: History):
    assert history.read(0) == {}
    make(history, 2)
    for upto in (0, 1, 2, 1, 0):  # a copy that is ahead is built again
        assert history.read(upto) == history.now[upto]


def test_replaying_a_batch_reads_the_same_state(history: History):
    make(history, 3)
    assert history.read(2) == history.read(2) == history.now[2]
    assert history.read(3) == history.now[3]


def test_only_what_is_missing_is_applied(history: History):
    make(history, 1)
    history.read(1)
    make(history, 1)
    history.store.delete("changes/1/0-0.1.arrow")
    assert history.read(2) == history.now[2]


@pytest.mark.parametrize(("bytes_of_one", "files"), [(copies._ONE_FILE, 1), (1, 4)])
def test_changes_of_batches_become_one_file_unless_they_are_many(
    history: History, monkeypatch: pytest.MonkeyPatch, bytes_of_one: int, files: int
):
    monkeypatch.setattr(copies, "_ONE_FILE", bytes_of_one)
    make(history, 4)
    with ready_copy(history.root / "copies", "0-0", history.ref, 4, history.log, history.store):
        found = [*(history.root / "copies").glob("0-0/*.sst")]
        assert len(found) == files + 1  # a new copy begins with one that says it is empty
    assert history.read(4) == history.now[4]


@pytest.mark.parametrize("harm", ["lost", "foreign", "damaged", "marked", "half"])
def test_a_bad_copy_is_built_again(history: History, harm: str):
    make(history, 5)
    history.snapshot(3)
    path = history.root / "copies/0-0"
    if harm == "lost":
        shutil.rmtree(path)
    elif harm == "foreign":
        shutil.rmtree(path)
        with open_copy(path, StateRef("s0", 1)) as copy:
            copy.advance(4, store=True)
    elif harm == "damaged":
        next(path.glob("MANIFEST-*")).write_bytes(b"")
    elif harm == "marked":
        path.with_name("0-0.damaged").touch()
    else:
        shutil.copytree(path, path.with_name("0-0.rebuilt"))
        shutil.rmtree(path)
    assert history.read(5) == history.now[5]
    assert [found.name for found in (history.root / "copies").iterdir()] == ["0-0"]


def test_a_copy_of_earlier_days_catches_up(history: History, tmp_path: Path):
    make(history, 2)
    history.read(2)
    shutil.copytree(history.root / "copies", tmp_path / "old")
    make(history, 3)
    history.read(5)
    shutil.rmtree(history.root / "copies")
    shutil.copytree(tmp_path / "old", history.root / "copies")
    assert history.read(5) == history.now[5]


def test_two_snapshots_and_what_follows_are_kept(history: History):
    for batch in (3, 6, 9):
        make(history, 3)
        history.snapshot(batch)
    assert snapshot_batches(history.store) == [9, 6]
    kept = {name.split("/")[1] for name in history.store.list("changes/")}
    assert kept == {"6", "7", "8", "9"}
    shutil.rmtree(history.root / "copies")
    for upto in (9, 8, 6):
        assert history.read(upto) == history.now[upto]
    with pytest.raises(StateError, match=r"'0-0' cannot be brought to batch 5: .*is missing"):
        history.read(5)


def stored_tables(history: History, batch: int) -> dict[str, int]:
    folder = history.root / f"snapshots/{batch}/0-0"
    return {table.name: table.stat().st_ino for table in folder.glob("*.sst")}


def test_a_snapshot_writes_only_new_tables(history: History):
    make(history, 2)
    history.snapshot(2)
    make(history, 1)
    history.snapshot(3)
    before, after = stored_tables(history, 2), stored_tables(history, 3)
    assert before.items() < after.items()
    shutil.rmtree(history.root / "copies")
    assert history.read(3) == history.now[3]


def test_a_table_of_the_same_name_is_not_taken_for_the_same(history: History):
    make(history, 1)
    history.snapshot(1)
    shutil.rmtree(history.root / "copies")
    with open_copy(history.root / "copies/0-0", history.ref) as copy:  # numbers begin again
        copy.advance(0, store=True)
    make(history, 1)
    history.snapshot(2)
    before, after = stored_tables(history, 1), stored_tables(history, 2)
    assert set(before) & set(after)
    assert not set(before.values()) & set(after.values())
    shutil.rmtree(history.root / "copies")
    assert history.read(2) == history.now[2]


@pytest.mark.parametrize("victim", ["manifest.json", "0-0/manifest.json", "0-0/CURRENT", "sst"])
@pytest.mark.parametrize("harm", ["torn", "flipped", "lost"])
def test_a_damaged_snapshot_gives_way_to_the_older_one(history: History, victim: str, harm: str):
    make(history, 2)
    history.snapshot(2)
    make(history, 2)
    history.snapshot(4)
    make(history, 1)
    folder = history.root / "snapshots/4"
    new = set(stored_tables(history, 4)) - set(stored_tables(history, 2))
    path = folder / "0-0" / new.pop() if victim == "sst" else folder / victim
    data = bytearray(path.read_bytes())
    if harm == "lost":
        path.unlink()
    elif harm == "torn":
        path.write_bytes(data[:-1])
    else:
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    shutil.rmtree(history.root / "copies")
    assert history.read(5) == history.now[5]


def test_an_incomplete_snapshot_does_not_count(history: History):
    make(history, 2)
    history.snapshot(2)
    history.store.delete("snapshots/2/manifest.json")
    assert snapshot_batches(history.store) == []
    history.snapshot(2)  # the driver tries again
    assert snapshot_batches(history.store) == [2]


def test_what_cannot_be_rebuilt_is_said(history: History):
    make(history, 3)
    path = history.root / "changes/2/0-0.1.arrow"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StateError, match=r"'changes/2/0-0\.1\.arrow' is damaged") as error:
        history.read(3)
    assert error.value.hint
    assert history.read(1) == history.now[1]


def test_a_good_copy_survives_a_failed_rebuild(history: History):
    make(history, 2)
    history.read(1)
    path = history.root / "changes/2/0-0.1.arrow"
    whole = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(StateError):
        history.read(2)
    history.store.delete("changes/1/0-0.1.arrow")
    path.write_bytes(whole)
    assert history.read(2) == history.now[2]


def test_a_partition_added_after_the_snapshot_starts_empty(history: History):
    make(history, 2)
    history.snapshot(2)
    history.store.delete("commits/1.json")
    make(history, 1)
    copies = history.root / "copies"
    with ready_copy(copies, "1-0", history.ref, 3, history.log, history.store) as copy:
        assert copy.range(b"", None).keys == []
        assert copy.applied == 3


def test_another_generation_begins_with_its_own_snapshot(history: History, record: Any):
    make(history, 2)
    history.snapshot(2)
    history.log.replace_state(replace(record, generation=2))
    history.ref = StateRef("s1", 2)
    with pytest.raises(StateError, match="another state or generation"):
        history.read(2)
