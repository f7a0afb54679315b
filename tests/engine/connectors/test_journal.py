"""A journal: what was acknowledged is there, whatever happens to its files in between."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from kaflow_engine.connectors.journal import journal as module
from kaflow_engine.connectors.journal.folder import ended_by, mark_ended
from kaflow_engine.connectors.journal.journal import KEPT_MS, Journal, Message
from kaflow_engine.connectors.journal.open_journals import open_journal
from kaflow_engine.connectors.journal.segments import frames, segments
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.errors import SourceError, StateError

NOW = 1_795_296_000_000


def messages(*values: int, keyed: bool = False) -> list[Message]:
    return [Message(value=b"%d" % n, key=f"k{n}" if keyed else None) for n in values]


def values(folder: Path) -> list[int]:
    source = JournalSource(name="s", folder=folder)
    found = source.read(source.start("earliest"), source.latest())
    assert found["offset"].to_pylist() == list(
        range(source.start("earliest")[0], source.latest()[0])
    )
    return [int(value) for value in found["value"].to_pylist()]


def test_records_have_offsets_in_the_order_of_their_coming(tmp_path: Path) -> None:
    journal = Journal(tmp_path, NOW)
    assert [journal.append(messages(1, 2), NOW), journal.append(messages(3), NOW)] == [0, 2]
    assert values(tmp_path) == [1, 2, 3]
    journal.close()
    again = Journal(tmp_path, NOW)
    assert again.append(messages(4), NOW + 1) == 3
    assert values(tmp_path) == [1, 2, 3, 4]
    assert JournalSource(name="s", folder=tmp_path).start(NOW + 1) == {0: 3}
    again.close()


def test_a_frame_that_was_not_written_to_its_end_is_none(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "whole", NOW)
    journal.append(messages(1, 2), NOW, b"two")
    journal.append(messages(3, 4, keyed=True), NOW, b"four")
    assert journal.note == b"four"
    journal.close()
    ((_, path),) = segments(tmp_path / "whole")
    last = list(frames(path))[-1]
    for cut in {*range(last.position - 20, path.stat().st_size, 97), path.stat().st_size - 1}:
        torn = tmp_path / f"torn at {cut}"
        shutil.copytree(tmp_path / "whole", torn)
        shutil.rmtree(torn / "keys")
        (torn / path.name).write_bytes(path.read_bytes()[:cut] + b"\xff" * 3)
        after = Journal(torn, NOW)
        assert (after.end, after.note, after.knows("k3", NOW)) == (2, b"two", False)
        after.append(messages(5), NOW)
        assert values(torn) == [1, 2, 5]
        after.close()


@pytest.mark.parametrize("lost", [False, True], ids=["kept", "made again"])
def test_a_message_that_is_sent_again_is_known_for_a_day(tmp_path: Path, lost: bool) -> None:
    journal = Journal(tmp_path, NOW)
    journal.append(messages(1, 2, keyed=True), NOW)
    journal.close()
    if lost:
        shutil.rmtree(tmp_path / "keys")
    again = Journal(tmp_path, NOW)
    found = [again.knows(key, NOW + 5) for key in ("k1", "k2", "k3")]
    assert found == [True, True, False]
    assert not again.knows("k1", NOW + KEPT_MS)
    again.close()


def test_what_cannot_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, NOW)
    journal.append(messages(1), NOW)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        for _ in range(2):
            with pytest.raises(StateError, match="no space left on device"):
                journal.append(messages(2), NOW)
    assert journal.append(messages(3), NOW) == 1
    assert values(tmp_path) == [1, 3]
    journal.close()


def test_a_note_stays_with_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SEGMENT_BYTES", 1)
    journal = Journal(tmp_path, NOW)
    for n in range(3):
        journal.append(messages(n), NOW, b"%d" % n)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for _ in range(2):  # each leaves a file without a frame
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StateError):
                journal.append(messages(9), NOW, b"lost")
        journal.close()
        journal = Journal(tmp_path, NOW)
        assert (journal.end, journal.note) == (3, b"2")
        journal.forget(3, 10**15)
    journal.close()
    journal = Journal(tmp_path, NOW)
    assert (journal.end, journal.note) == (3, b"2")
    journal.close()


def test_what_waits_is_counted_from_where_the_pipeline_is(tmp_path: Path) -> None:
    journal = Journal(tmp_path, NOW)
    journal.append(messages(*range(5)), NOW)
    assert journal.backlog == 5
    journal.close()
    again = Journal(tmp_path, NOW)  # whose pipeline may have read everything
    assert again.backlog == 0
    again.append(messages(5, 6), NOW)
    assert again.backlog == 2
    again.forget(4, NOW)
    assert again.backlog == 3
    again.close()
    with pytest.raises(StateError, match="is closed"):
        again.append(messages(7), NOW)


def test_files_that_were_read_and_are_old_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SEGMENT_BYTES", 1)
    with open_journal(tmp_path) as journal:
        for n in range(4):
            journal.append(messages(n), NOW)
        source = JournalSource(name="s", folder=tmp_path)
        now = round(max(path.stat().st_mtime for _, path in segments(tmp_path)) * 1000)
        source.forget({0: 2}, now)
        assert len(segments(tmp_path)) == 4
        source.forget({0: 2}, now + KEPT_MS + 1000)
        assert source.start("earliest") == {0: 2}
        assert values(tmp_path) == [2, 3]
        assert journal.read_up_to == 2
        with pytest.raises(SourceError, match=r"has no record 1 of source 's'"):
            source.read({0: 1}, {0: 3})


@pytest.mark.parametrize(
    ("mark", "ends_as", "bounded"),
    [
        ("acme.rows", "acme.rows", True),
        ("acme.other", "acme.rows", False),
        ("", "acme.rows", False),
        (None, "acme.rows", False),
        ("acme.rows", None, False),
    ],
)
def test_only_its_own_kind_of_source_ends_a_journal(
    tmp_path: Path, mark: str | None, ends_as: str | None, bounded: bool
) -> None:
    mark_ended(tmp_path, mark)
    source = JournalSource(name="s", folder=tmp_path, ends_as=ends_as)
    assert (source.finite, source.bounded) == (ends_as is not None, bounded)


def test_the_mark_of_an_end_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StateError, match="no space left on device"):
            mark_ended(tmp_path, "acme.rows")
    assert ended_by(tmp_path) is None
    mark_ended(tmp_path, "acme.rows")
    assert ended_by(tmp_path) == "acme.rows"
    assert [path.name for path in tmp_path.iterdir()] == ["ended"]
