"""Folders as outputs: tasks write whole files, and the driver gives those of a batch names."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.contract import (
    Bounded,
    Capabilities,
    FinishedBatch,
    Output,
    Owner,
    Sink,
    TaskPart,
    Written,
)
from kaflow_engine.connectors.files.capabilities import CAPABILITIES
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.files.ledger import Entry, Ledger
from kaflow_engine.connectors.files.place import NewFile, Place, place_of
from kaflow_engine.connectors.files.reading import read_rows
from kaflow_engine.connectors.files.rows import parts_of, write_rows
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.same_batch import other_records, other_rows
from kaflow_engine.errors import SinkError

_NOTE = "output_files"


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """A task writes its files where no reader looks for them."""

    output: Output
    owner: Owner

    def write(self, part: TaskPart) -> Written:
        """Write files under names that no other try has.

        Raises:
            SinkError: They cannot be written.
        """
        place, owner, output = place_of(self.output), self.owner, self.output
        files: list[NewFile] = []
        with translated(output, place):
            parts, refused = parts_of(output, part.rows)
            for one in parts:
                rows = part.rows.take(pa.array(one.places))
                name = file_name(output, owner, part.batch, one.slot)
                where = f"{one.folder}/{name}" if one.folder else name
                write = partial(write_rows, output=output, rows=rows)
                staged = place.stage(where, part.epoch, part.batch, write)
                files.append(NewFile(staged, where, rows.num_rows))
        part.passing("files_written")
        note = {_NOTE: {output.name: [[file.staged, file.name, file.rows] for file in files]}}
        return Written(
            rows={output.name: part.rows.num_rows - len(refused)},
            notes=(note,),
            refused=tuple(refused),
        )


class Folder:
    """A folder as the driver of a run sees it."""

    capabilities: Capabilities = CAPABILITIES

    def __init__(self, output: Output, owner: Owner, place: Place) -> None:
        self._output, self._owner, self._place = output, owner, place
        self._ledger = _ledger(place, output, owner)

    def commit(self, batch: FinishedBatch) -> None:
        """Give the files of a batch their names; those of one that runs again, the ones it had.

        Raises:
            TakenOver: Another run has begun.
            StateError: The folder has another batch of that number, or other rows of it.
            SinkError: The folder cannot be written.
        """
        files = _files_of(batch.notes, self._output.name)
        with translated(self._output, self._place), self._ledger.held() as before:
            if before.batch <= batch.number:
                self._commit(before, batch, files)
            self._place.clear(self._owner, batch.number)

    def _commit(self, before: Entry, batch: FinishedBatch, files: Sequence[NewFile]) -> None:
        now = {file.name: file.rows for file in files}
        again = before.batch == batch.number
        if again:
            _require_same(self._output, before, batch, now)
        elif not now:
            return
        # What is visible is always known: names go before the ledger forgets them, and come after.
        # A run that was replaced may be as far as that in a bucket. It removes what lost records
        # have made only, which no later run writes.
        if gone := sorted(before.files.keys() - now.keys()) if again else ():
            self._place.remove(gone)
        staged = {file.name: file.staged for file in files}
        self._ledger.write(
            replace(before, batch=batch.number, mark=batch.mark, files=now, staged=staged)
        )
        try:
            self._place.publish(files)
        except FolderUnfit:
            self._ledger.require_newest()  # who begins removes what others have staged
            raise

    def delivered(self, batch: int) -> bool:
        """Tell whether the folder has something of a batch, or of a later one."""
        with translated(self._output, self._place):
            found = self._ledger.entry()
        return found is not None and found.is_of(self._owner) and found.batch >= batch

    def finish(self) -> None:
        """Do nothing: every batch was visible when it was committed."""


class FolderOutlet:
    """Opens folders, and reads them."""

    def read(self, output: Output, since: int, most: int) -> pa.Table:
        """Return rows of the files that were written since then, the newest first."""
        place = place_of(output)
        with translated(output, place, "read"):
            return read_rows(output, place, since, most)

    def task(self, output: Output, owner: Owner) -> FolderFiles:
        """Return what writes files."""
        return FolderFiles(output, owner)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Return the last batch that the folder has, from whatever state."""
        with _fit(output) as place:
            return _ledger(place, output, owner).holdings()

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make a folder that of another state: whoever had it can add no more."""
        with _fit(output) as place:
            _ledger(place, output, owner).hand_over()

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Create the folder, and fence earlier runs; what their tasks left goes."""
        with _fit(output) as place:
            _ledger(place, output, owner).begin()
            return Folder(output, owner, place)


def file_name(output: Output, owner: Owner, batch: int, slot: int) -> str:
    """Return what the file of a delivery partition of a batch is called, in each folder.

    It follows from the batch alone: a batch that runs again in another number of tasks has the
    same delivery partitions.
    """
    return f"{owner.state}-{owner.generation}-{batch:010}-{slot:04}.{output.settings['format']}"


@contextmanager
def translated(output: Output, place: Place, doing: str = "write to") -> Generator[None]:
    """Raise errors of the file system as errors of our own."""
    try:
        yield
    except OSError as error:
        raise SinkError(
            f"cannot {doing} the folder of output '{output.name}', '{place}': "
            f"{error.strerror or error}",
            hint="fix the folder, or set `warehouse` to another one",
        ) from error


@contextmanager
def _fit(output: Output) -> Generator[Place]:
    """Give the place of an output, which can be written."""
    place = place_of(output)
    with translated(output, place):
        place.require_fit()
        yield place


def _ledger(place: Place, output: Output, owner: Owner) -> Ledger:
    return Ledger(place, str(output.settings["folder"]), owner)


def _files_of(notes: Sequence[Mapping[str, Any]], name: str) -> list[NewFile]:
    rows: list[Any] = [row for note in notes for row in note.get(_NOTE, {}).get(name, ())]
    return [NewFile(*row) for row in rows]


def _require_same(
    output: Output, before: Entry, batch: FinishedBatch, now: Mapping[str, int]
) -> None:
    if before.mark != batch.mark:
        raise other_records("folder", str(output.settings["folder"]), batch.number)
    if not batch.same_rows:
        return
    for name in sorted({*before.files, *now}):
        had, has = before.files.get(name, 0), now.get(name, 0)
        if had != has:
            place = f"to '{name}' in folder '{output.settings['folder']}'"
            raise other_rows("folder", batch.number, had, has, place)
