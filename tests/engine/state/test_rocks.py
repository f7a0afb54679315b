import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies.rocks_open import open_copy, wipe
from kaflow_engine.state.copies.rocks_options import COMPACT_AT
from kaflow_engine.state.log.changes import to_changes
from kaflow_engine.state.reader import Entries, StateRef
from kaflow_engine.state.storage.store import Damaged

REF = StateRef("s1", 1)


def test_changes_last_over_closing(tmp_path: Path):
    with open_copy(tmp_path / "c", REF) as copy:
        assert copy.applied is None
        copy.apply(to_changes([b"a", b"\x00", b"\xff\xff", b"a"], [b"0", b"2", b"3", b"1"]), 4)
    with open_copy(tmp_path / "c", REF) as copy:
        assert (copy.applied, copy.foreign) == (4, False)
        assert copy.get([b"x", b"a", b"\xff\xff", b"a"]) == [None, b"1", b"3", b"1"]
        assert copy.range(b"", None) == Entries([b"\x00", b"a", b"\xff\xff"], [b"2", b"1", b"3"])
        assert copy.range(b"\x00", b"a").keys == [b"\x00"]
        assert copy.range(b"b", b"a").keys == []
        assert copy.get([]) == []
        assert copy.scan([]).keys == []
        assert copy.size().entries == 3


def test_prefixes_in_any_order_may_overlap(tmp_path: Path):
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"a", b"ab", b"ad", b"b"], [b"1", b"2", b"3", b"4"]), 1)
        found = copy.scan([b"ab", b"zz", b"a", b"ab", b"\xff"])
        assert found.index == [0, 2, 2, 2, 3]
        assert found.keys == [b"ab", b"a", b"ab", b"ad", b"ab"]
        assert found.values == [b"2", b"1", b"2", b"3", b"2"]
        assert copy.scan([b"ab", b"a"]).keys == [b"ab", b"a", b"ab", b"ad"]
        assert copy.scan([b""]).keys == [b"a", b"ab", b"ad", b"b"]


def test_more_keys_than_one_read_takes(tmp_path: Path):
    keys = [b"%05d" % number for number in range(2500)]
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes(keys, keys), 1)
        assert copy.get(keys) == keys
        assert copy.get([*reversed(keys), b"x"]) == [*reversed(keys), None]


@pytest.mark.parametrize("ref", [StateRef("s2", 1), StateRef("s1", 2)])
def test_another_state_is_foreign(tmp_path: Path, ref: StateRef):
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"a"], [b"1"]), 1)
    with open_copy(tmp_path / "c", ref) as copy:
        assert copy.foreign
        with pytest.raises(ValueError, match="cannot be applied"):
            copy.apply(to_changes([b"a"], [b"2"]), 2)
    wipe(tmp_path / "c")
    with open_copy(tmp_path / "c", ref) as copy:
        assert (copy.foreign, copy.applied) == (False, None)


def test_a_batch_is_applied_once_and_whole(tmp_path: Path):
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"a"], [b"1"]), 2)
        with pytest.raises(ValueError, match="cannot be applied"):
            copy.apply(to_changes([b"a"], [b"2"]), 2)
        with pytest.raises(ValueError, match="must not be null or empty"):
            copy.apply(to_changes([b"a", b""], [b"2", b"2"]), 3)
        assert (copy.applied, copy.get([b"a"])) == (2, [b"1"])


def test_a_crash_keeps_entries_together_with_their_batch(tmp_path: Path):
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"a"], [b"1"]), 1)
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"a"], [b"2"]), 2)
        shutil.copytree(tmp_path / "c", tmp_path / "crashed")
    with open_copy(tmp_path / "crashed", REF) as copy:
        assert (copy.applied, copy.get([b"a"])) == (2, [b"2"])


@pytest.mark.slow
def test_a_killed_process_keeps_entries_together_with_their_batch(tmp_path: Path):
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"a"], [b"1"]), 1)
    code = (
        "import os, sys, pathlib\n"
        "from kaflow_engine.state.copies.rocks_open import open_copy\n"
        "from kaflow_engine.state.reader import StateRef\n"
        "from kaflow_engine.state.log.changes import to_changes\n"
        "copy = open_copy(pathlib.Path(sys.argv[1]), StateRef('s1', 1))\n"
        "copy.apply(to_changes([b'a'], [b'2']), 2)\n"
        "os._exit(9)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "c"], env=env, check=False)
    assert done.returncode == 9
    with open_copy(tmp_path / "c", REF) as copy:
        assert (copy.applied, copy.get([b"a"])) == (2, [b"2"])


def test_a_file_that_a_crash_left_behind_is_not_written_to(tmp_path: Path):
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"a"], [b"1"]), 1)
    (taken,) = (tmp_path / "c").glob("*.sst")
    (tmp_path / "c" / "incoming.sst").hardlink_to(taken)
    with open_copy(tmp_path / "c", REF) as copy:
        copy.apply(to_changes([b"b"], [b"2"]), 2)
    with open_copy(tmp_path / "c", REF) as copy:
        assert (copy.applied, copy.get([b"a", b"b"])) == (2, [b"1", b"2"])


def test_opening_waits_for_the_holder(tmp_path: Path):
    held = open_copy(tmp_path / "c", REF)
    held.advance(0, store=True)
    with pytest.raises(StateError, match="still open in another process"):
        open_copy(tmp_path / "c", REF, wait_s=0.05)
    closing = threading.Event()

    def close() -> None:
        closing.set()
        held.close()

    closer = threading.Timer(0.1, close)
    closer.start()
    with open_copy(tmp_path / "c", REF, wait_s=60):
        assert closing.is_set()
    closer.join()


def test_quiet_batches_are_stored_now_and_then(tmp_path: Path):
    with open_copy(tmp_path / "c", REF) as copy:
        copy.advance(1, store=True)
        copy.advance(5)
        assert copy.applied == 5
    with open_copy(tmp_path / "c", REF) as copy:
        assert copy.applied == 1
        copy.advance(40)
    with open_copy(tmp_path / "c", REF) as copy:
        assert copy.applied == 40
        with pytest.raises(ValueError, match="ahead of"):
            copy.advance(39)


def test_level_0_does_not_pile_up(tmp_path: Path):
    for batch in range(1, 3 * COMPACT_AT):
        with open_copy(tmp_path / "c", REF) as copy:
            copy.apply(to_changes([b"%d" % (batch % 4), b"k"], [b"%d" % batch, b"v"]), batch)
    assert len(list((tmp_path / "c").glob("*.sst"))) < 2 * COMPACT_AT
    with open_copy(tmp_path / "c", REF) as copy:
        assert copy._property("num-files-at-level0") < COMPACT_AT
        assert copy.get([b"1", b"2"]) == [b"17", b"14"]


def harm(path: Path, how: str) -> None:
    table = next(path.glob("*.sst"))
    data = bytearray(table.read_bytes())
    if how == "flipped":
        data[20] ^= 0xFF
        table.write_bytes(data)
    elif how == "torn":
        table.write_bytes(data[:-10])
    elif how == "lost":
        table.unlink()
    elif how == "manifest":
        next(path.glob("MANIFEST-*")).write_bytes(b"nonsense")
    else:
        (path / "CURRENT").write_bytes(b"")


@pytest.mark.parametrize("how", ["flipped", "torn", "lost", "manifest", "current"])
def test_damage_is_found_and_remembered(tmp_path: Path, how: str):
    path = tmp_path / "c"
    with open_copy(path, REF) as copy:
        copy.apply(to_changes([b"a", b"b"], [b"1", b"2"]), 1)
    harm(path, how)

    def read() -> None:
        with open_copy(path, REF) as copy:
            copy.get([b"a"])

    with pytest.raises(Damaged, match="is damaged") as error:
        read()
    assert error.value.hint
    wipe(path)
    with open_copy(path, REF) as copy:
        assert copy.applied is None


@pytest.mark.parametrize("read", ["get", "scan", "range"])
def test_a_bad_block_is_no_end_of_data(tmp_path: Path, read: str):
    path = tmp_path / "c"
    keys = [b"%06d" % number for number in range(5000)]
    with open_copy(path, REF) as copy:
        copy.apply(to_changes(keys, [os.urandom(50) for _ in keys]), 1)
    table = next(path.glob("*.sst"))
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 0xFF
    table.write_bytes(data)

    def read_all() -> None:
        with open_copy(path, REF) as copy:
            if read == "get":
                copy.get(keys)
            elif read == "scan":
                copy.scan([b"00"])
            else:
                copy.range(b"", None)

    with pytest.raises(Damaged):
        read_all()
    with pytest.raises(Damaged):
        open_copy(path, REF)
