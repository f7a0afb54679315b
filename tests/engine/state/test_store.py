import os
from pathlib import Path

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.state.storage.store import LocalStore, NameMissing, NameTaken


def test_create_is_exclusive_and_put_replaces(tmp_path: Path):
    store = LocalStore(tmp_path / "new")
    store.create("a/b/c", b"1")
    with pytest.raises(NameTaken):
        store.create("a/b/c", b"2")
    assert store.get("a/b/c") == b"1"
    store.put("a/b/c", memoryview(b"3"))
    assert store.get("a/b/c") == b"3"
    assert os.listdir(tmp_path / "new/a/b") == ["c"]


def test_names_are_listed_by_prefix_without_unfinished_ones(tmp_path: Path):
    store = LocalStore(tmp_path)
    for name in ("x/10/a", "x/9/a", "x/1", "y"):
        store.put(name, b"")
    (tmp_path / "x" / ".torn.123.fresh").write_bytes(b"half")
    assert store.list("x/") == ["x/1", "x/10/a", "x/9/a"]
    assert store.list("x/1") == ["x/1", "x/10/a"]
    assert store.list("") == ["x/1", "x/10/a", "x/9/a", "y"]
    assert store.list("none/") == []


def test_deleting_the_last_file_removes_the_directory_and_leftovers(tmp_path: Path):
    store = LocalStore(tmp_path)
    store.put("x/a", b"")
    (tmp_path / "x" / ".torn.123.fresh").write_bytes(b"half")
    store.delete("x/a")
    store.delete("x/a")
    assert not (tmp_path / "x").exists()
    assert tmp_path.exists()


def test_a_missing_name_is_said(tmp_path: Path):
    store = LocalStore(tmp_path)
    assert not store.exists("no")
    with pytest.raises(NameMissing, match="'no' is missing"):
        store.get("no")
    with pytest.raises(NameMissing):
        store.download("no", tmp_path / "here")
    with pytest.raises(NameMissing):
        store.copy("no", "yes")


def test_a_failing_disk_is_a_state_error_with_a_cure(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StateError, match="cannot write 'file/x'") as error:
        LocalStore(tmp_path).put("file/x", b"")
    assert error.value.hint


def test_files_go_in_and_out_with_their_checksum(tmp_path: Path):
    store = LocalStore(tmp_path / "store")
    (tmp_path / "local").write_bytes(b"abc")
    digest = store.upload(tmp_path / "local", "f/1")
    assert digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    store.copy("f/1", "f/2")
    store.copy("f/1", "f/2")
    assert sorted(os.listdir(tmp_path / "store/f")) == ["1", "2"]
    assert (tmp_path / "store/f/1").stat().st_nlink == 2
    assert store.download("f/2", tmp_path / "back") == digest
    store.put("f/1", b"other")
    assert store.get("f/2") == b"abc"
