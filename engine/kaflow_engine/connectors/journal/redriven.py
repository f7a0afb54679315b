"""Records that are put into a journal again: whoever asks leaves them in a box beside it.

One process has a journal at a time, and it may not be the one that asks. So what is asked for waits
in files until that process takes it, now or at its next start, and notes that it did.
"""

import base64
import json
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from kaflow_engine.connectors.journal.journal import Journal, Message
from kaflow_engine.errors import KaflowError
from kaflow_engine.state.storage.store import LocalStore, NameMissing

_BOX, _TAKEN = "redrive", "redriven"
_LOOK_S = 0.5
_LEAVES_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A record that is to come once more."""

    note: str
    """What no other record has that is put there; the same one is taken once."""
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def put_again(folder: Path, records: Sequence[Again], now: int) -> None:
    """Leave records for whoever has a journal.

    Args:
        folder: Of the journal.
        records: In the order in which they are to come.
        now: Epoch milliseconds: what was left before comes first.

    Raises:
        StateError: They cannot be written.
    """
    rows = [
        {
            "note": each.note,
            "value": _text(each.value),
            "headers": [[name, _text(value)] for name, value in each.headers],
        }
        for each in records
    ]
    name = f"{_BOX}/{now:015d}-{token_hex(4)}.json"
    LocalStore(folder).put(name, json.dumps(rows).encode())


def noted(folder: Path) -> frozenset[str]:
    """Return the notes of all records that were put there, taken or not.

    Raises:
        StateError: They cannot be read.
    """
    store, waiting = LocalStore(folder), list[str]()
    for name in store.list(f"{_BOX}/"):
        with suppress(NameMissing):  # it was taken meanwhile, which is noted before it goes
            waiting += [each.note for each in _read(store, name)]
    return _taken(store).union(waiting)


def take_again(journal: Journal, now: int) -> int:
    """Write the records that wait into a journal; return how many there were.

    A crash between writing and noting it leaves the file: its records are known by their notes, as
    requests are by their keys.

    Args:
        journal: Which this process has.
        now: Epoch milliseconds.

    Raises:
        StateError: They cannot be read or written.
    """
    store, count = LocalStore(journal.folder), 0
    for name in store.list(f"{_BOX}/"):
        done = f"{_TAKEN}/{name.removeprefix(f'{_BOX}/')}"
        if not store.exists(done):
            records = list(_read(store, name))
            before = _taken(store)
            messages = [
                Message(value=each.value or b"", key=_key(each.note), headers=each.headers)
                for each in records
                if each.note not in before and not journal.knows(_key(each.note), now)
            ]
            if messages:
                journal.append_beside(messages, now)
            count += len(messages)
            store.put(done, json.dumps([each.note for each in records]).encode())
        store.delete(name)
    return count


@contextmanager
def taking(journals: Mapping[str, Journal]) -> Generator[None]:
    """Take what is put into journals, to the end of the block.

    Args:
        journals: By source.
    """
    stopped = threading.Event()

    def look() -> None:
        while True:
            for journal in journals.values():
                try:
                    take_again(journal, round(time.time() * 1000))
                except KaflowError as error:
                    journal.fail(error)
            if stopped.wait(_LOOK_S):
                return

    thread = threading.Thread(target=look, name="kaflow-redriven", daemon=True)
    if journals:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        if journals:
            thread.join(_LEAVES_S)


def _taken(store: LocalStore) -> frozenset[str]:
    found = (json.loads(store.get(name)) for name in store.list(f"{_TAKEN}/"))
    return frozenset(note for notes in found for note in notes)


def _read(store: LocalStore, name: str) -> Iterator[Again]:
    for row in json.loads(store.get(name)):
        headers = tuple((name, _bytes(value) or b"") for name, value in row["headers"])
        yield Again(note=row["note"], value=_bytes(row["value"]), headers=headers)


def _key(note: str) -> str:
    return f"\0redriven {note}"


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
