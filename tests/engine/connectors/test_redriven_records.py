"""Records that are put into a journal again: each once, whoever has it and whenever."""

from pathlib import Path

import pytest

from kaflow_engine.connectors.journal.journal import Journal, Message
from kaflow_engine.connectors.journal.redriven import Again, noted, put_again, take_again
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.state.storage.store import LocalStore

NOW = 1_700_000_000_000


def again(*numbers: int) -> list[Again]:
    return [Again(note=f"0:{n}@id", value=str(n).encode(), headers=(("h", b"x"),)) for n in numbers]


def values(folder: Path) -> list[bytes]:
    source = JournalSource(name="s", folder=folder)
    return source.read({0: 0}, source.latest())["value"].to_pylist()


def test_they_come_in_order_and_each_once(tmp_path: Path) -> None:
    put_again(tmp_path, again(1, 2), NOW)
    put_again(tmp_path, again(2, 3), NOW + 1)
    journal = Journal(tmp_path, NOW)
    journal.append([Message(value=b"0")], NOW, b"a cursor")
    assert take_again(journal, NOW + 2) == 3
    assert take_again(journal, NOW + 3) == 0
    put_again(tmp_path, again(1), NOW + 4)
    assert take_again(journal, NOW + 5) == 0
    assert journal.note == b"a cursor"  # what a source knows of itself stays
    journal.close()
    assert values(tmp_path) == [b"0", b"1", b"2", b"3"]
    assert noted(tmp_path) == {"0:1@id", "0:2@id", "0:3@id"}


def test_a_crash_before_it_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_again(tmp_path, again(1, 2), NOW)
    journal = Journal(tmp_path, NOW)
    with monkeypatch.context() as patch:

        def crash(*_: object) -> None:
            raise SystemExit

        patch.setattr("kaflow_engine.state.storage.store.LocalStore.put", crash)
        with pytest.raises(SystemExit):
            take_again(journal, NOW + 1)
    journal.close()
    journal = Journal(tmp_path, NOW + 2)
    assert take_again(journal, NOW + 3) == 0
    journal.close()
    assert values(tmp_path) == [b"1", b"2"]


def test_what_is_taken_while_someone_looks_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_again(tmp_path, again(1, 2), NOW)
    journal = Journal(tmp_path, NOW)
    listed = LocalStore.list

    def taken_then(store: LocalStore, prefix: str) -> list[str]:
        names = listed(store, prefix)
        with monkeypatch.context() as patch:
            patch.setattr(LocalStore, "list", listed)
            take_again(journal, NOW + 1)
        return names

    monkeypatch.setattr(LocalStore, "list", taken_then)
    assert noted(tmp_path) == {"0:1@id", "0:2@id"}
    journal.close()
