from pathlib import Path

import pyarrow as pa
import pytest

from kaflow_engine.state.log.changes import (
    CHANGES,
    change_lists,
    last_per_key,
    read_changes,
    to_changes,
    write_changes,
)
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, LocalStore

REF = StateRef("s1", 1)


def test_the_last_row_of_a_key_is_written_in_key_order(tmp_path: Path):
    store = LocalStore(tmp_path)
    changes = to_changes([b"b", b"a", b"b", b"c"], [b"1", b"2", None, b"3"])
    file = write_changes(store, REF, 7, "0-1", 3, changes)
    assert file is not None
    assert (file.file, file.rows) == ("changes/7/0-1.3.arrow", 3)
    read = read_changes(store, REF, 7, "0-1", file)
    assert read.schema.equals(CHANGES, check_metadata=True)
    assert change_lists(read) == ([b"a", b"b", b"c"], [b"2", None, b"3"])


def test_writing_again_gives_the_same_file(tmp_path: Path):
    store = LocalStore(tmp_path)
    once = write_changes(store, REF, 1, "0-0", 1, to_changes([b"a", b"b"], [b"1", None]))
    again = write_changes(store, REF, 1, "0-0", 1, to_changes([b"b", b"a"], [None, b"1"]))
    assert once == again
    assert store.list("") == ["changes/1/0-0.1.arrow"]


def test_no_changes_make_no_file(tmp_path: Path):
    store = LocalStore(tmp_path)
    assert write_changes(store, REF, 1, "0-0", 1, to_changes([], [])) is None
    assert store.list("") == []


def test_chunks_are_one_table():
    parts = [to_changes([b"a"], [b"1"]), to_changes([b"a", b"b"], [b"2", b"3"])]
    assert change_lists(last_per_key(pa.concat_tables(parts))) == ([b"a", b"b"], [b"2", b"3"])


@pytest.mark.parametrize("key", [None, b""])
def test_a_key_must_not_be_empty(key: bytes | None):
    table = pa.table({"key": [b"a", key], "value": [b"1", b"2"]}, schema=CHANGES)
    with pytest.raises(ValueError, match="must not be null or empty"):
        last_per_key(table)


@pytest.mark.parametrize("at", [0, 100, -1])
def test_a_flipped_bit_is_found(tmp_path: Path, at: int):
    store = LocalStore(tmp_path)
    file = write_changes(store, REF, 1, "0-0", 1, to_changes([b"a"], [b"1"]))
    assert file is not None
    data = bytearray(store.get(file.file))
    data[at] ^= 1
    store.put(file.file, bytes(data))
    with pytest.raises(Damaged, match=r"'changes/1/0-0\.1\.arrow' is damaged") as error:
        read_changes(store, REF, 1, "0-0", file)
    assert error.value.hint


@pytest.mark.parametrize(
    ("ref", "batch", "partition"),
    [(StateRef("s2", 1), 1, "0-0"), (StateRef("s1", 2), 1, "0-0"), (REF, 2, "0-0"), (REF, 1, "1")],
)
def test_a_file_of_elsewhere_is_refused(tmp_path: Path, ref: StateRef, batch: int, partition: str):
    store = LocalStore(tmp_path)
    file = write_changes(store, REF, 1, "0-0", 1, to_changes([b"a"], [b"1"]))
    assert file is not None
    with pytest.raises(Damaged, match="belongs to another"):
        read_changes(store, ref, batch, partition, file)
