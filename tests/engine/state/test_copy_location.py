import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies.copies import ready_copy
from kaflow_engine.state.storage.copy_location import InState, OnHost, copy_root, host_folder

OWN = f"kaflow-{os.geteuid()}"


def test_one_machine_keeps_copies_beside_the_log(tmp_path):
    with copy_root(InState(tmp_path), "1-0") as root:
        assert root == tmp_path / "copies"


@pytest.mark.parametrize(
    ("folder", "dirs", "found"),
    [
        ("/data", "/a/blockmgr-1", {"/data/p"}),
        (None, "/a/blockmgr-1", {f"/a/{OWN}/p"}),
        (None, "/a/blockmgr-1,/b/blockmgr-2", {f"/a/{OWN}/p", f"/b/{OWN}/p"}),
    ],
)
def test_a_host_keeps_copies_on_its_own_disks(folder, dirs, found):
    place = OnHost("p", Path(folder) if folder else None)
    environ = {"SPARK_LOCAL_DIRS": dirs}
    partitions = [f"1-{number}" for number in range(20)]
    assert {str(host_folder(place, name, environ)) for name in partitions} == found


def test_who_finds_a_copy_taken_uses_another_and_the_first_again_when_it_is_free(tmp_path):
    place = OnHost("p", tmp_path)
    with copy_root(place, "1-0") as first, copy_root(place, "1-1") as beside:
        assert first == beside == tmp_path / "p/0"
        with copy_root(place, "1-0") as second:
            assert second == tmp_path / "p/1"
    with copy_root(place, "1-0") as again:
        assert again == first


def test_a_disk_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "p").write_text("in the way")
    with pytest.raises(StateError, match="folder of state copies") as told:
        with copy_root(OnHost("p", tmp_path), "1-0"):
            pass
    assert "state.rocksdb.local" in told.value.hint


def test_a_partition_that_went_to_another_host_and_comes_back_is_caught_up(history, tmp_path):
    hosts = [OnHost("p", tmp_path / name) for name in ("here", "there")]

    def read(host, upto):
        with (
            copy_root(host, "0-0") as root,
            ready_copy(root, "0-0", history.ref, upto, history.log, history.store) as copy,
        ):
            found = copy.range(b"", None)
            return dict(zip(found.keys, found.values, strict=True))

    for number in range(1, 12):
        history.run({b"k%d" % (number % 3): b"v%d" % number, b"old": None})
        host = hosts[number in (1, 2, 3, 4, 10)]
        assert read(host, number) == history.now[number]
        if number % 3 == 0:
            history.snapshot(number)  # what is older than the one before goes
    assert read(hosts[0], 11) == history.now[11]


def test_two_readers_on_a_host_do_not_wait_for_each_other(history, tmp_path):
    history.run({b"a": b"1"})
    place = OnHost("p", tmp_path)

    def read():
        with (
            copy_root(place, "0-0") as root,
            ready_copy(root, "0-0", history.ref, 1, history.log, history.store) as copy,
        ):
            return copy.get([b"a"]), root.name

    with copy_root(place, "0-0") as root:
        with ready_copy(root, "0-0", history.ref, 1, history.log, history.store):
            with ThreadPoolExecutor(1) as other:
                assert other.submit(read).result(10) == ([b"1"], "1")
