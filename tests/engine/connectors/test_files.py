"""Folders: names that follow from the batch, who may write there, and what is cut off."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.files.folder import FolderOfWarehouse
from kaflow_engine.errors import SinkError, StateError, TakenOver
from tests.engine.connectors.files_here import OWNER, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, {"n": "INTEGER"}, format="json")


def test_names_follow_from_the_batch(files: Files) -> None:
    opened = files.open()
    opened.commit(files.batch(7, files.rows("(1)"), files.rows("(2)", slot=3)))
    assert files.names() == ["ab12-1-0000000007-0000.json", "ab12-1-0000000007-0003.json"]
    assert files.tries() == []
    later = replace(OWNER, state="cd34", epoch=2)
    files.outlet.hand_over(files.output, pa.schema([]), later)
    files.open(later).commit(files.batch(7, files.rows("(3)"), owner=later))
    assert len(files.names()) == 3


def test_a_batch_without_rows_leaves_nothing(files: Files) -> None:
    opened = files.open()
    opened.commit(files.batch(1))
    assert (files.names(), opened.delivered(1)) == ([], False)


def test_nothing_half_written_is_visible(files: Files) -> None:
    opened = files.open()
    batch = files.batch(1, files.rows("(1), (2)"))
    assert files.names() == []
    assert [path.suffix for path in files.tries()] == [".tmp"]
    opened.commit(batch)
    assert [p.read_text() for p in files.folder.glob("*.json")] == ['{"n":1}\n{"n":2}\n']


@pytest.mark.parametrize("named", [0, 1, 2])
def test_a_batch_that_is_cut_off_between_its_names(
    files: Files, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    rows = [files.rows("(1)"), files.rows("(2)", slot=1)]
    opened, left = files.open(), iter([None] * named)

    def give(self: Any, file: Any) -> None:
        if next(left, "cut") == "cut":
            raise KeyboardInterrupt
        os.replace(files.folder / file.staged, files.folder / file.name)

    with monkeypatch.context() as patched:
        patched.setattr("kaflow_engine.connectors.files.folder.FolderOfWarehouse._give_name", give)
        batch = files.batch(1, *rows)
        if named < 2:
            with pytest.raises(KeyboardInterrupt):
                opened.commit(batch)
    assert len(files.names()) == (named if named < 2 else 0)
    again = files.open(replace(OWNER, epoch=2))
    assert again.delivered(1) == (named < 2)  # what is there must be finished as it was begun
    assert files.tries() == []
    again.commit(files.batch(1, *rows, owner=replace(OWNER, epoch=2)))
    assert [json.loads((files.folder / name).read_text())["n"] for name in files.names()] == [1, 2]


def test_a_commit_that_is_tried_again_goes_on(files: Files) -> None:
    opened = files.open()
    batch = files.batch(1, files.rows("(1)"))
    opened.commit(batch)
    opened.commit(batch)
    assert len(files.names()) == 1


def test_a_batch_that_lost_records_leaves_what_it_has_now(files: Files) -> None:
    opened = files.open()
    opened.commit(files.batch(1, files.rows("(1)"), files.rows("(2)", slot=1)))
    with pytest.raises(StateError, match=r"has written 1 rows to 'ab12-1-0000000001-0000\.json'"):
        opened.commit(files.batch(1, files.rows("(2)", slot=1)))
    opened.commit(replace(files.batch(1, files.rows("(2)", slot=1)), same_rows=False))
    assert files.names() == ["ab12-1-0000000001-0001.json"]
    with pytest.raises(StateError, match="another copy of the state was run"):
        opened.commit(replace(files.batch(1, files.rows("(2)", slot=1)), mark="another"))


def test_a_batch_that_lost_records_and_is_cut_off_leaves_no_row_of_before(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = files.open()
    opened.commit(files.batch(1, files.rows("(1)"), files.rows("(2)", slot=1)))
    with monkeypatch.context() as patch:
        patch.delattr(FolderOfWarehouse, "_give_name")
        with pytest.raises(AttributeError):
            opened.commit(replace(files.batch(1, files.rows("(2)", slot=1)), same_rows=False))
    files.open().commit(replace(files.batch(1, files.rows("(2)", slot=1)), same_rows=False))
    assert files.names() == ["ab12-1-0000000001-0001.json"]


def test_files_that_were_taken_away_do_not_come_back(files: Files) -> None:
    opened = files.open()
    opened.commit(files.batch(1, files.rows("(1)")))
    opened.commit(files.batch(2, files.rows("(2)")))
    (files.folder / files.names()[0]).unlink()
    opened.commit(files.batch(1, files.rows("(1)")))
    assert files.names() == ["ab12-1-0000000002-0000.json"]


def test_a_run_that_was_replaced_adds_nothing(files: Files) -> None:
    old = files.open()
    batch = files.batch(1, files.rows("(1)"))
    files.open(replace(OWNER, epoch=2))
    with pytest.raises(TakenOver, match="another run has taken over folder 'out'"):
        old.commit(batch)
    with pytest.raises(TakenOver):
        files.open()
    assert files.names() == []


def test_a_folder_that_another_process_holds(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = files.open()
    batch = files.batch(1, files.rows("(1)"))
    monkeypatch.setattr("kaflow_engine.connectors.files.folder._WAIT_S", 0.0)
    with FolderOfWarehouse(files.output).exclusive():
        with pytest.raises(SinkError, match="another process holds folder"):
            opened.commit(batch)
    opened.commit(batch)
    assert len(files.names()) == 1


def not_shared(files: Files) -> None:
    batch = files.batch(1, files.rows("(1)"))
    for path in files.tries():
        path.unlink()
    files.open().commit(batch)


def a_file(files: Files) -> None:
    files.folder.write_text("")
    files.outlet.look(files.output, pa.schema([]), OWNER)


def a_table(files: Files) -> None:
    (files.folder / "_delta_log").mkdir(parents=True)
    files.open()


def damaged(files: Files) -> None:
    (files.folder / "_kaflow").mkdir(parents=True)
    (files.folder / "_kaflow" / "ledger").write_text("{")
    files.outlet.look(files.output, pa.schema([]), OWNER)


def no_warehouse(files: Files) -> None:
    output = replace(files.output, connection={})
    files.outlet.look(output, pa.schema([]), OWNER)


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (not_shared, "is not in '.*' here"),
        (a_file, "is no folder"),
        (a_table, "is a Delta table"),
        (damaged, "is damaged"),
        (no_warehouse, "there is no warehouse"),
    ],
)
def test_folders_that_do_not_fit(files: Files, do: Any, words: str) -> None:
    with pytest.raises(FolderUnfit, match=words):
        do(files)


def test_errors_of_the_file_system_name_the_folder(files: Files) -> None:
    files.folder.parent.joinpath("out").write_text("")
    with pytest.raises(SinkError, match="cannot write to the folder of output 'files:out'"):
        files.batch(1, files.rows("(1)"))


def test_a_reader_of_all_files_meets_no_ledger(files: Files) -> None:
    files.open().commit(files.batch(1, files.rows("(1), (2)")))
    assert [path.name for path in files.folder.rglob("*.json")] == ["ab12-1-0000000001-0000.json"]


def test_what_tasks_of_other_runs_left_goes(files: Files) -> None:
    files.open()
    files.batch(9, files.rows("(1)"))
    newer = replace(OWNER, epoch=2)
    files.open(newer)
    assert files.tries() == []
    kept = files.batch(9, files.rows("(1)"), owner=newer)
    with pytest.raises(TakenOver):
        files.open()
    files.open(newer).commit(kept)
    assert len(files.names()) == 1


def test_looking_changes_nothing(files: Files) -> None:
    assert list(files.outlet.look(files.output, pa.schema([]), OWNER)) == []
    assert not files.folder.exists()
