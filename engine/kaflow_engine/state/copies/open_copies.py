"""Copies that a worker keeps open from batch to batch, to read.

A copy that is opened to be read takes no lock and writes nothing, so several processes may have it
open. One that writes to it, as `ready_copy` does, makes it begin another manifest: those that have
it open see that, and open it again. What was changed since is kept on top, until it is worth
writing it to the copy.
"""

from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies.copies import changed_in, ready_copy
from kaflow_engine.state.copies.known import Known, Room
from kaflow_engine.state.copies.pending import PendingState
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.copies.rocks_errors import damage_mark
from kaflow_engine.state.copies.rocks_open import open_copy
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.log.changes import read_changes
from kaflow_engine.state.reader import CopySize, Entries, Scanned, StateRef
from kaflow_engine.state.storage.store import Damaged, Store

_MOST_CHANGES = 1_000
_MOST_BYTES = 4 << 20
"""Changes on top of a copy, at most: more are read more slowly than they are written to it."""
_MOST_BATCHES = 256
"""Batches behind which a copy may be: a process that opens it looks at their commits."""
_MOST_OPEN = 64
"""Copies that a process keeps open."""


class OpenCopy:
    """A copy that is open to be read, and the changes that it does not have yet."""

    def __init__(self, copy: RocksCopy, mark: object, applied: int, room: Room) -> None:
        self.mark, self.ref = mark, copy.ref
        self._copy, self._behind, self._applied = copy, applied, applied
        self._known = Known(copy, room)
        self._pending = PendingState(self._known)
        self._changes = self._bytes = 0

    @property
    def applied(self) -> int:
        """The batch after which the state was as it is read."""
        return self._applied

    def catch_up(self, partition: str, upto: int, log: BatchLog) -> bool:
        """Put the changes up to a batch on top; return whether they are few enough for that.

        Raises:
            Damaged: A change file, or its commit, is missing or not sound.
        """
        if upto - self._behind > _MOST_BATCHES:
            return False
        for batch in range(self._applied + 1, upto + 1):
            file = changed_in(batch, partition, self.ref, log)
            if file is not None:
                self._changes += file.rows
                if self._changes > _MOST_CHANGES:
                    return False
                changes = read_changes(log.store, self.ref, batch, partition, file)
                self._bytes += changes.nbytes
                self._pending.apply(changes)
            self._applied = batch
        return self._bytes <= _MOST_BYTES

    def close(self) -> None:
        """Close the copy; nothing was written to it."""
        self._known.forget()
        self._copy.close(settle=False)

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `StateReader`."""
        return self._pending.get(keys)

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """See `StateReader`."""
        return self._pending.read(keys)

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """See `StateReader`."""
        return self._pending.scan(prefixes)

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """See `StateReader`."""
        return self._pending.range(start, stop, most)

    def size(self) -> CopySize:
        """Return entries and bytes, as RocksDB estimates them."""
        size = self._copy.size()
        return CopySize(max(size.entries + self._pending.grown, 0), size.bytes)


class OpenCopies:
    """The copies that a process keeps open; one that is in use is not among them."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, OpenCopy] = OrderedDict()
        self._room = Room()

    @contextmanager
    def reading(
        self, root: Path, partition: str, ref: StateRef, upto: int, log: BatchLog, snapshots: Store
    ) -> Generator[OpenCopy | RocksCopy]:
        """Give the state as it was after a batch; takes and raises what `ready_copy` does."""
        path = root / partition
        found = self._ready(path, ref, upto, log)
        if found is None:
            with ready_copy(root, partition, ref, upto, log, snapshots) as copy:
                yield copy
            return
        try:
            yield found
        except BaseException:
            found.close()
            raise
        self._keep(path, found)

    def _ready(self, path: Path, ref: StateRef, upto: int, log: BatchLog) -> OpenCopy | None:
        """Return a copy that is open and has caught up; None: it must be written to, or built."""
        mark = _mark(path)
        found = self._open.pop(path, None)
        if found is not None and (found.mark != mark or found.ref != ref or found.applied > upto):
            found.close()
            found = None
        found = found or _opened(path, ref, upto, mark, self._room)
        if found is None:
            return None
        with suppress(Damaged):  # then the copy may have what the log lacks
            if found.catch_up(path.name, upto, log):
                return found
        found.close()
        return None

    def _keep(self, path: Path, copy: OpenCopy) -> None:
        self._open[path] = copy
        while len(self._open) > _MOST_OPEN:
            _, oldest = self._open.popitem(last=False)
            oldest.close()


def _mark(path: Path) -> object:
    """Return what changes whenever a process opens a copy to write; None: it cannot be read."""
    try:
        about = (path / "CURRENT").stat()
    except OSError:
        return None
    return None if damage_mark(path).exists() else (about.st_ino, about.st_mtime_ns)


def _opened(path: Path, ref: StateRef, upto: int, mark: object, room: Room) -> OpenCopy | None:
    if mark is None:
        return None
    try:
        copy = open_copy(path, ref, to_read=True)
    except StateError:
        return (
            None  # maybe it is being written: who opens it to write waits, or tells what is wrong
        )
    if copy.foreign or copy.applied is None or copy.applied > upto or _mark(path) != mark:
        copy.close(settle=False)
        return None
    return OpenCopy(copy, mark, copy.applied, room)
