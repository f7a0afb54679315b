"""Folders as outputs: tasks write whole files, and the driver gives those of a batch names."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
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
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.files.ledger import OWN, TRIES, Entry, Ledger, sync
from kaflow_engine.connectors.files.reading import read_rows
from kaflow_engine.connectors.files.rows import parts_of, write_file
from kaflow_engine.connectors.files.sink import CAPABILITIES
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.read_back import nothing_there
from kaflow_engine.connectors.same_batch import other_records, other_rows
from kaflow_engine.errors import SinkError

_NOTE = "output_files"


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is whole, and waits for its name."""

    path: str
    """Where it is, below the folder of the output."""
    name: str
    """What it will be called, below that folder."""
    rows: int


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
        folder, owner, output = folder_of(self.output), self.owner, self.output
        files: list[NewFile] = []
        with translated(output):
            parts, refused = parts_of(output, part.rows)
            for one in parts:
                rows = part.rows.take(pa.array(one.places))
                path = f"{OWN}/{TRIES}/{part.epoch}-{part.batch}-{one.slot}-{token_hex(8)}.tmp"
                write_file(folder / path, output, rows)
                name = file_name(output, owner, part.batch, one.slot)
                where = f"{one.folder}/{name}" if one.folder else name
                files.append(NewFile(path, where, rows.num_rows))
        part.passing("files_written")
        note = {_NOTE: {output.name: [[file.path, file.name, file.rows] for file in files]}}
        return Written(
            rows={output.name: part.rows.num_rows - len(refused)},
            notes=(note,),
            refused=tuple(refused),
        )


class Folder:
    """A folder as the driver of a run sees it."""

    capabilities: Capabilities = CAPABILITIES

    def __init__(self, output: Output, owner: Owner) -> None:
        self._output, self._owner = output, owner
        self._folder = folder_of(output)
        self._ledger = Ledger(self._folder, owner)

    def commit(self, batch: FinishedBatch) -> None:
        """Give the files of a batch their names; those of one that runs again, the ones it had.

        Raises:
            TakenOver: Another run has begun.
            StateError: The folder has another batch of that number, or other rows of it.
            SinkError: The folder cannot be written.
        """
        files = _files_of(batch.notes, self._output.name)
        with translated(self._output), self._ledger.held() as before:
            if before.batch <= batch.number:
                self._commit(before, batch, files)
            self._clear(batch.number)

    def _commit(self, before: Entry, batch: FinishedBatch, files: Sequence[NewFile]) -> None:
        now = {file.name: file.rows for file in files}
        again = before.batch == batch.number
        if again:
            _require_same(self._output, before, batch, now)
        elif not now:
            return
        # What is visible is always known: names go before the ledger forgets them, and come after.
        for name in before.files.keys() - now.keys() if again else ():
            (self._folder / name).unlink(missing_ok=True)
        self._ledger.write(replace(before, batch=batch.number, mark=batch.mark, files=now))
        for file in files:
            self._give_name(file)
        changed = now.keys() | (before.files.keys() if again else ())
        parents = {self._folder / place for name in changed for place in Path(name).parents}
        for place in sorted(parents, reverse=True):  # those that are new have names in others
            sync(place)

    def _give_name(self, file: NewFile) -> None:
        target = self._folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            (self._folder / file.path).replace(target)
        except FileNotFoundError as error:
            if target.exists():  # an earlier try of this commit came as far as that
                return
            raise FolderUnfit(
                f"a file that a task wrote for output '{self._output.name}' is not in "
                f"'{self._folder}' here",
                hint="the `warehouse` must be one folder for the driver and all executors",
            ) from error

    def _clear(self, batch: int) -> None:
        """Remove what tries have left of a batch that is done, and of earlier ones."""
        for path in (self._folder / OWN / TRIES).glob("*.tmp"):
            if int(path.name.split("-")[1]) <= batch:
                path.unlink(missing_ok=True)

    def delivered(self, batch: int) -> bool:
        """Tell whether the folder has something of a batch, or of a later one."""
        with translated(self._output):
            found = self._ledger.entry()
        return found is not None and found.is_of(self._owner) and found.batch >= batch

    def finish(self) -> None:
        """Do nothing: every batch was visible when it was committed."""


class FolderOutlet:
    """Opens folders, and reads them."""

    def read(self, output: Output, since: int, most: int) -> pa.Table:
        """Return rows of the files that were written since then, the newest first."""
        folder = folder_of(output)
        with translated(output, "read"):
            if not folder.is_dir():
                raise nothing_there(output, f"folder '{folder}'")
            return read_rows(output, folder, since, most)

    def task(self, output: Output, owner: Owner) -> FolderFiles:
        """Return what writes files."""
        return FolderFiles(output, owner)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Return the last batch that the folder has, from whatever state."""
        _require_folder(output)
        with translated(output):
            return Ledger(folder_of(output), owner).holdings()

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make a folder that of another state: whoever had it can add no more."""
        _require_folder(output)
        with translated(output):
            Ledger(folder_of(output), owner).hand_over()

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Create the folder, and fence earlier runs; what their tasks left goes."""
        _require_folder(output)
        with translated(output):
            Ledger(folder_of(output), owner).begin()
        return Folder(output, owner)


def folder_of(output: Output) -> Path:
    """Return the folder of an output.

    Raises:
        FolderUnfit: No warehouse is configured.
    """
    warehouse = output.connection.get("warehouse")
    if not warehouse:
        raise FolderUnfit(f"there is no warehouse for the folder of output '{output.name}'")
    return Path(warehouse) / str(output.settings["folder"])


def file_name(output: Output, owner: Owner, batch: int, slot: int) -> str:
    """Return what the file of a delivery partition of a batch is called, in each folder.

    It follows from the batch alone: a batch that runs again in another number of tasks has the
    same delivery partitions.
    """
    return f"{owner.state}-{owner.generation}-{batch:010}-{slot:04}.{output.settings['format']}"


@contextmanager
def translated(output: Output, doing: str = "write to") -> Generator[None]:
    """Raise errors of the file system as errors of our own."""
    try:
        yield
    except OSError as error:
        raise SinkError(
            f"cannot {doing} the folder of output '{output.name}', '{folder_of(output)}': "
            f"{error.strerror or error}",
            hint="fix the folder, or set `warehouse` to another one",
        ) from error


def _files_of(notes: Sequence[Mapping[str, Any]], name: str) -> list[NewFile]:
    rows: list[Any] = [row for note in notes for row in note.get(_NOTE, {}).get(name, ())]
    return [NewFile(*row) for row in rows]


def _require_folder(output: Output) -> None:
    """Refuse a folder that cannot be written, or is a table; nothing is changed by looking."""
    folder = folder_of(output)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FolderUnfit(
            f"'{folder}' of output '{output.name}' is no folder", hint="give it another `folder`"
        )
    if (folder / "_delta_log").exists():
        raise FolderUnfit(
            f"'{folder}' of output '{output.name}' is a Delta table, whose files only commits name",
            hint="give the output another `folder`, or write `table:` instead",
        )
    with suppress(OSError):
        if os.access(folder, os.W_OK | os.X_OK):
            return
    raise FolderUnfit(
        f"'{folder}' of output '{output.name}' may not be written",
        hint="give the user that runs the pipeline the right to, or set another `warehouse`",
    )


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
