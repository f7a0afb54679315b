"""The note of a journal when it is opened: that of its last records, and of no others."""

import errno
import os
from pathlib import Path

import pytest

from kaflow_engine.connectors.journal.journal import Journal, Message
from kaflow_engine.connectors.journal.segments import Segment, frames, segments
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.errors import StateError

NOW = 1_795_296_000_000


def test_a_journal_without_records(tmp_path: Path) -> None:
    for _ in range(2):
        journal = Journal(tmp_path, NOW)
        assert (journal.end, journal.note) == (0, None)
        journal.close()
        (tmp_path / f"{0:020d}.frames").write_bytes(b"\0" * 7)


def test_what_failed_and_could_not_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*about: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal = Journal(tmp_path, NOW)
    journal.append([Message(value=b"1")], NOW, b"one")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        patched.setattr(os, "truncate", broken)
        with pytest.raises(StateError):
            journal.append([Message(value=b"2")], NOW, b"two")
    ((_, path),) = segments(tmp_path)
    assert len([*frames(path)]) == 2
    Segment(tmp_path, journal.end).close()  # what was to come behind it was never written
    journal.close()
    again = Journal(tmp_path, NOW)
    assert (again.end, again.note) == (1, b"one")
    again.append([Message(value=b"3")], NOW, b"three")
    again.close()
    last = Journal(tmp_path, NOW)
    assert (last.end, last.note) == (2, b"three")
    last.close()
    source = JournalSource(name="s", folder=tmp_path)
    found = source.read(source.start("earliest"), source.latest())
    assert found["value"].to_pylist() == [b"1", b"3"]
