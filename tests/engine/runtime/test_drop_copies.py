"""Copies of chains that are gone leave the disk, and no others."""

from kaflow_engine.runtime.takeover.recovery import drop_copies


def test_copies_of_retired_chains_are_dropped(tmp_path):
    names = ["1-0", "2-1", "1001-0", "1002-1", "1002-1.rebuilt", "11001-0", "other"]
    for name in names:
        (tmp_path / name).mkdir()
    drop_copies(tmp_path, (1, 5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1-0", "11001-0", "2-1", "other"]


def test_there_may_be_no_copies_yet(tmp_path):
    drop_copies(tmp_path / "copies", (1,))
