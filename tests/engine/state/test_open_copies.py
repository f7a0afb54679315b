"""Copies that workers keep open: when they are read as they are, and when they are written to."""

from typing import Any

import pytest

from kaflow_engine.state.copies import open_copies
from kaflow_engine.state.copies.rocks import RocksCopy

History = Any  # of conftest.py, which cannot be imported by name


def reading(history: History, upto: int) -> Any:
    about = history.root / "copies", "0-0", history.ref, upto, history.log, history.store
    return next(history.workers).reading(*about)


def test_two_workers_have_a_copy_open_and_neither_writes(history: History):
    history.run({b"a": b"1"})
    history.read(1)
    manifest = (history.root / "copies/0-0/CURRENT").read_text()
    for number in range(2, 12):
        history.run({b"a": b"%d" % number, b"k%d" % number: b"v", b"k%d" % (number - 2): None})
        with reading(history, number) as copy:
            assert not isinstance(copy, RocksCopy)
            assert copy.size().entries > 0
        assert history.look(number) == history.now[number]
    assert (history.root / "copies/0-0/CURRENT").read_text() == manifest
    assert history.read(11) == history.now[11]
    assert history.look(11) == history.now[11]


@pytest.mark.parametrize("limit", ["_MOST_CHANGES", "_MOST_BYTES", "_MOST_BATCHES"])
def test_a_copy_that_lacks_much_is_written_to(
    history: History, limit: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(open_copies, limit, 3)
    written: list[bool] = []
    for number in range(1, 41):
        history.run({b"a": b"%d" % number})
        with reading(history, number) as copy:
            written.append(isinstance(copy, RocksCopy))
            assert copy.get([b"a", b"b"]) == [b"%d" % number, None]
    assert written[0]  # there was none
    assert written.count(True) > 5


def test_a_copy_that_failed_is_opened_again(history: History):
    history.run({b"a": b"1"})
    history.read(1)
    with pytest.raises(ZeroDivisionError), reading(history, 1):
        raise ZeroDivisionError
    assert history.look(1) == history.look(1) == history.now[1]


def test_a_process_keeps_so_many_copies_open(history: History, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_copies, "_MOST_OPEN", 0)
    history.run({b"a": b"1"})
    history.read(1)
    for _ in range(4):
        assert history.look(1) == history.now[1]
