"""A RocksDB copy of one state partition; what it lacks or loses is applied again."""

import json
import time
from collections.abc import Callable, Sequence
from itertools import islice
from operator import lt
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import pyarrow as pa
import rocksdict
from rocksdict import IngestExternalFileOptions, Rdict, ReadOptions, SstFileWriter

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies.rocks_errors import (
    damaged,
    telling,
)
from kaflow_engine.state.copies.rocks_options import COMPACT_AT, copy_options, until
from kaflow_engine.state.log.changes import CHANGES, change_lists, last_per_key
from kaflow_engine.state.reader import (
    CopySize,
    Entries,
    Scanned,
    StateRef,
    read_in_order,
    successor,
)

_META = b""  # sorts before every state key, none of which is empty
_FIRST_KEY = b"\x00"
_INCOMING = "incoming.sst"
_GET = 1000  # keys at once: a longer list is slower, and takes memory that is never given back
_AT_ONCE = 20_000  # changes that are Python objects at once; a million of them take 150 MiB
_KEEP_QUIET = 32
_SETTLE_S = 30.0


class RocksCopy:
    """An open copy: a StateReader that change files are applied to."""

    def __init__(self, path: Path, ref: StateRef, db: Rdict) -> None:
        self.path, self.ref = path, ref
        self._db = db
        self._closed = False
        self.foreign = False
        """Whether the copy holds another state, or another generation of it."""
        self._stored: int | None = None
        self._read_meta()
        self._applied = self._stored

    @property
    def applied(self) -> int | None:
        """The batch after which the state was as this copy has it; None for an empty copy."""
        return self._applied

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(settle=error is None)

    def close(self, *, settle: bool = True) -> None:
        """Close the copy; first wait for a compaction that is due, which runs at no other time."""
        if self._closed:
            return
        self._closed = True
        try:
            if settle:
                with telling(self.path):
                    self._settle()
        finally:
            self._db.close()

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none."""
        ordered = keys if _ascend(keys) else sorted(set(keys))  # they are read twice as fast
        values: list[bytes | None] = []
        with telling(self.path):
            for at in range(0, len(ordered), _GET):
                values += cast(Any, self._db.get(cast(Any, ordered[at : at + _GET])))
        if ordered is keys:
            return values
        found = dict(zip(ordered, values, strict=True))
        return [found[key] for key in keys]

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of each key, null where there is none; each key once."""
        return read_in_order(self.get, keys)

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """Return all entries whose key starts with one of the prefixes."""
        index: list[int] = []
        keys: list[bytes] = []
        values: list[bytes] = []
        if prefixes:
            order = sorted(range(len(prefixes)), key=prefixes.__getitem__)
            with telling(self.path):
                self._scan(prefixes, order, (index, keys, values))
            if order != list(range(len(prefixes))):
                back = sorted(range(len(index)), key=index.__getitem__)
                index = [index[row] for row in back]
                keys = [keys[row] for row in back]
                values = [values[row] for row in back]
        return Scanned(index, keys, values)

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """Return the first `most` entries with `start` <= key < `stop`; None: no bound."""
        first = max(start, _FIRST_KEY)
        if stop is not None and stop <= first:
            return Entries([], [])
        options = until(stop)
        with telling(self.path):
            pairs = cast(
                "list[tuple[bytes, bytes]]",
                list(islice(self._db.items(from_key=first, read_opt=options), most)),
            )
            if most is None or len(pairs) < most:
                self._assert_end(pairs[-1][0] if pairs else None, first, options)
        return Entries([key for key, _ in pairs], [value for _, value in pairs])

    def apply(self, changes: pa.Table, batch: int) -> None:
        """Apply changes, and the batch up to which they are, at once: a crash loses both or none.

        Args:
            changes: Schema CHANGES; later rows win.
            batch: A later batch than the one applied last.
        """
        if self.foreign or (self._applied is not None and batch <= self._applied):
            raise ValueError(f"batch {batch} cannot be applied to {self.path} at {self._applied}")
        self._ingest(last_per_key(changes), batch)

    def advance(self, batch: int, *, store: bool = False) -> None:
        """Note that nothing changed up to and including a batch.

        It is stored now and then only, because each write makes a task leave a file behind; what
        was not stored is looked up again in the commits.
        """
        if self._applied is not None and batch < self._applied:
            raise ValueError(f"{self.path} is at {self._applied}, ahead of {batch}")
        self._applied = batch
        if self._stored != batch and (store or batch - (self._stored or 0) >= _KEEP_QUIET):
            self._ingest(CHANGES.empty_table(), batch)

    def checkpoint(self, target: Path) -> None:
        """Make a copy of the files as they are now, by hard links; `target` must not exist."""
        with telling(self.path):
            maker = cast(Any, rocksdict).Checkpoint(self._db)  # the stub lacks it
            try:
                maker.create_checkpoint(str(target))
            finally:
                del maker  # it keeps the database open

    def size(self) -> CopySize:
        """Return entries and bytes, as RocksDB estimates them."""
        entries = self._property("estimate-num-keys") - (self._stored is not None)
        return CopySize(max(entries, 0), self._property("total-sst-files-size"))

    def _scan(
        self,
        prefixes: Sequence[bytes],
        order: list[int],
        into: tuple[list[int], list[bytes], list[bytes]],
    ) -> None:
        index, keys, values = into
        stops = [successor(prefix) for prefix in prefixes]
        stop = None if None in stops else max(cast("list[bytes]", stops))
        cursor = self._db.iter(until(stop))
        valid, key_at = cursor.valid, cast("Callable[[], bytes]", cursor.key)
        value_at, move = cast("Callable[[], bytes]", cursor.value), cursor.next
        before: bytes | None = None
        here: bytes | None = None  # where the cursor stands; None: behind the last key
        for position in order:
            prefix = prefixes[position]
            behind = here is not None and here < prefix
            if behind or before is None or prefix.startswith(before):  # else it stands beyond
                cursor.seek(prefix or _FIRST_KEY)
                here = key_at() if valid() else None
            before = prefix
            while here is not None and here.startswith(prefix):
                index.append(position)
                keys.append(here)
                values.append(value_at())
                move()
                here = key_at() if valid() else None
            if here is None:
                cursor.status()  # raises if it ended for another reason than the end

    def _assert_end(self, last: bytes | None, first: bytes, options: ReadOptions) -> None:
        """Look again where iteration ended, because `items` takes a read error for the end."""
        cursor = self._db.iter(options)
        cursor.seek(first if last is None else last)
        if last is not None and cursor.valid():
            cursor.next()
        cursor.status()
        if cursor.valid():
            raise StateError(f"reading '{self.path}' was cut short", hint="run it again")

    def _ingest(self, changes: pa.Table, batch: int) -> None:
        """Add a file with changes that stand in the order of their keys, each key once.

        They do not pass through a memtable, which would have to be flushed when the copy is closed.
        """
        file = self.path / _INCOMING
        about = {"state_id": self.ref.state_id, "generation": self.ref.generation}
        with telling(self.path):
            file.unlink(missing_ok=True)  # after a crash it may be a link to a file of the copy
            writer = SstFileWriter(copy_options())
            writer.open(str(file))
            put, delete = writer.__setitem__, writer.__delitem__
            put(_META, json.dumps({**about, "applied": batch}).encode())
            for some in changes.to_batches(max_chunksize=_AT_ONCE):
                for key, value in zip(*change_lists(some), strict=True):
                    if value is None:
                        delete(key)
                    else:
                        put(key, value)
            writer.finish()
            self._db.ingest_external_file([str(file)], _moved())
        self._applied = self._stored = batch

    def _read_meta(self) -> None:
        with telling(self.path):
            meta = cast("bytes | None", self._db.get(_META))
            if meta is None:
                cursor = self._db.iter()
                cursor.seek_to_first()
                cursor.status()
                self.foreign = cursor.valid()  # entries of which no one knows the batch
                return
        try:
            about = json.loads(meta)
            self.foreign = StateRef(about["state_id"], about["generation"]) != self.ref
            self._stored = int(about["applied"])
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(self.path) from error

    def _settle(self) -> None:
        deadline = time.monotonic() + _SETTLE_S
        while (
            self._property("num-files-at-level0") >= COMPACT_AT
            or self._property("num-running-compactions")
        ) and time.monotonic() < deadline:
            time.sleep(0.005)

    def _property(self, name: str) -> int:
        return self._db.property_int_value(f"rocksdb.{name}") or 0


def _moved() -> IngestExternalFileOptions:
    options = IngestExternalFileOptions()
    options.set_move_files(True)
    return options


def _ascend(keys: Sequence[bytes]) -> bool:
    return all(map(lt, keys, islice(keys, 1, None)))
