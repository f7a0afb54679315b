"""A journal: records get their offsets when they are written down, and are acknowledged then."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock

import pyarrow as pa
from rocksdict import AccessType, Options, Rdict

from kaflow_engine.connectors.journal.segments import (
    COLUMNS,
    Frame,
    Segment,
    frames_between,
    last_frame,
    segments,
)
from kaflow_engine.errors import KaflowError, StateError
from kaflow_engine.state.storage.private import make_private

KEPT_MS = 86_400_000
"""How long records stay that were read, and how long the keys of requests are known."""

_SEGMENT_BYTES = 8 << 20
KEY_HEADER = "kaflow.idempotency"
"""The header of a record that has the key of its message."""
_INDEXED = b"\0end"
_NOTE = b"kaflow.note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What someone has sent."""

    value: bytes
    key: str | None = None
    """By which it is known when it is sent again."""
    headers: tuple[tuple[str, bytes], ...] = ()


class Journal:
    """Takes messages; one process has it at a time, which the lease of the pipeline sees to.

    Args:
        folder: Where it is.
        now: Epoch milliseconds.

    Raises:
        StateError: It cannot be read or written.
    """

    def __init__(self, folder: Path, now: int) -> None:
        self.folder = folder
        self._lock = Lock()
        self._closed = False
        self._segment: Segment | None = None
        self.read_up_to: int | None = None
        """The offset before which everything was read, and is never read again; None: not known."""
        self.written_bytes = 0
        """Of the values that were written down since it was opened."""
        self.failure: KaflowError | None = None
        """Why nothing more comes."""
        try:
            make_private(folder)
            last = last_frame(folder)
            self.end = self._opened_at = _end(folder, last)
            self._newest = None if last is None else last.path
            """The file with the last record."""
            self.note = None if last is None else last.metadata().get(_NOTE)
            """What was known once the last records were there; None: nothing was said of them."""
            self._keys = Rdict(
                str(folder / "keys"),
                Options(raw_mode=True),
                access_type=AccessType.with_ttl(KEPT_MS // 1000),
            )
            self._index(now)
        except OSError as error:
            raise _unusable(folder, error) from error

    def close(self) -> None:
        """Let go of the files."""
        with self._lock:
            self._closed = True
            self._drop_segment()
            self._keys.close()

    @property
    def backlog(self) -> int:
        """How many records wait for the pipeline; of those from before, once that is known."""
        return self.end - (self._opened_at if self.read_up_to is None else self.read_up_to)

    @property
    def written(self) -> int:
        """How many records were written down since it was opened."""
        return self.end - self._opened_at

    def size(self) -> int:
        """Return the bytes of its files."""
        found = 0
        for _, path in segments(self.folder):
            with suppress(FileNotFoundError):  # what was read may go at any time
                found += path.stat().st_size
        return found

    def fail(self, why: KaflowError) -> None:
        """Let the pipeline end when it looks for more records."""
        self.failure = why

    def knows(self, key: str, now: int) -> bool:
        """Tell whether a message with a key was written down."""
        at = self._keys.get(key.encode())
        return at is not None and now - int.from_bytes(at, "big") < KEPT_MS

    def append(self, messages: Sequence[Message], now: int, note: bytes | None = None) -> int:
        """Write messages down, and return the offset of the first once all survive a power cut.

        Args:
            messages: At least one; after a crash all of them are there, or none.
            now: Epoch milliseconds.
            note: What is known once they are there, and kept with them.

        Raises:
            StateError: They cannot be written; none of them is there.
        """
        with self._lock:
            return self._append(messages, now, note)

    def append_beside(self, messages: Sequence[Message], now: int) -> int:
        """Write messages down that come from elsewhere, as `append` does: what was known stays."""
        with self._lock:
            return self._append(messages, now, self.note)

    def _append(self, messages: Sequence[Message], now: int, note: bytes | None) -> int:
        rows = [
            {"timestamp": now, "key": None, "value": each.value, "headers": _headers(each)}
            for each in messages
        ]
        records = pa.Table.from_pylist(rows, schema=COLUMNS)
        if note is not None:
            records = records.replace_schema_metadata({_NOTE: note})
        if self._closed:
            raise StateError(f"the journal '{self.folder}' is closed")
        first = self.end
        try:
            self._segment = self._segment or Segment(self.folder, first)
            size = self._segment.add(first, records)
        except OSError as error:
            self._drop_segment()  # what may be torn is at its end, and nothing comes behind
            raise _unusable(self.folder, error) from error
        self.end, self.note, self._newest = first + len(messages), note, self._segment.path
        self._note([each.key for each in messages if each.key is not None], now)
        self.written_bytes += sum(len(each.value) for each in messages)
        if size > _SEGMENT_BYTES:
            self._drop_segment()
        return first

    def forget(self, before: int, now: int) -> None:
        """Remove files all of whose records were read, and are old."""
        self.read_up_to = max(self.read_up_to or 0, before)
        files = segments(self.folder)
        for (_, path), (following, _) in pairwise(files):
            if path == self._newest:  # it has the note
                return
            if following > before or now - path.stat().st_mtime * 1000 < KEPT_MS:
                return
            path.unlink()

    def _drop_segment(self) -> None:
        if self._segment is not None:
            with suppress(OSError):
                self._segment.close()
            self._segment = None

    def _note(self, keys: Sequence[str], now: int) -> None:
        """Remember keys; what a crash forgets is read from the frames again."""
        for key in keys:
            self._keys[key.encode()] = now.to_bytes(8, "big")
        self._keys[_INDEXED] = self.end.to_bytes(8, "big")

    def _index(self, now: int) -> None:
        """Note the keys of messages that a process wrote down and did not note."""
        known = int.from_bytes(self._keys.get(_INDEXED) or b"", "big")
        for frame in frames_between(self.folder, known, self.end):
            for row in frame.records().to_pylist():
                said = {each["key"]: each["value"] for each in row["headers"]}
                if (key := said.get(KEY_HEADER)) is not None:
                    self._keys[key] = row["timestamp"].to_bytes(8, "big")
        self._note((), now)


def journal_end(folder: Path) -> int:
    """Return the offset of the next record of a journal."""
    return _end(folder, last_frame(folder))


def _end(folder: Path, last: Frame | None) -> int:
    begun = [first for first, _ in segments(folder)]
    return max(begun[-1] if begun else 0, 0 if last is None else last.end)


def _headers(message: Message) -> list[dict[str, object]]:
    key = () if message.key is None else ((KEY_HEADER, message.key.encode()),)
    return [{"key": name, "value": value} for name, value in (*message.headers, *key)]


def _unusable(folder: Path, error: OSError) -> StateError:
    reason = (error.strerror or str(error)).lower()
    return StateError(
        f"the journal '{folder}' cannot be written: {reason}",
        hint="set state.rocksdb.path to a folder that this user may write, on a disk with room",
    )
