"""Dead letters in files beside the state of a pipeline that writes no topics."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from secrets import token_hex

import pyarrow as pa

from kaflow_engine.connectors.contract import Capabilities, FinishedBatch, TaskPart, Written
from kaflow_engine.connectors.letters import Letter, letter_of
from kaflow_engine.connectors.same_batch import other_rows
from kaflow_engine.state.storage.store import LocalStore

LETTERS = ".letters"
"""The folder of these files, beside the states: a state that goes leaves its dead letters."""

_COLUMNS = ("key", "value", "headers")
_NOTE = "letters"


def letters_folder(root: Path, pipeline_id: str) -> Path:
    """Return where the dead letters of a pipeline are, below the folder of all states."""
    return root / LETTERS / pipeline_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLetters:
    """Tasks write files; one file of the driver says which of them are those of a batch.

    A batch that runs again has files of other names, so each dead letter is there once, and none
    of a batch that was not committed.
    """

    folder: Path
    state: str
    generation: int
    same_rows: bool = True
    """Makes no difference: nothing is there until a batch is committed."""

    @property
    def capabilities(self) -> Capabilities:
        """What it promises."""
        return Capabilities(
            accepts=frozenset({"append"}),
            commit="driver",
            guarantee="exactly_once",
            reason="a file of the driver says which files are those of a batch",
            ordered=True,
        )

    def again(self, tries: int, same_rows: bool) -> "LocalLetters":
        """Return what writes a batch that runs again: the same."""
        return self

    def write(self, part: TaskPart) -> Written:
        """Write dead letters of schema OUTPUT.

        Raises:
            StateError: They cannot be written.
        """
        count = part.rows.num_rows
        name = f"{self._batch(part.batch)}/{part.epoch}-{token_hex(6)}.arrow"
        data, rows = BytesIO(), part.rows.select(list(_COLUMNS))
        with pa.ipc.new_file(data, rows.schema) as file:
            file.write_table(rows)
        self._store.put(name, data.getvalue())
        part.passing("letters_written")
        return Written(
            rows={}, notes=({_NOTE: [name, count]}, {"delivered": 0, "dead_letters": count})
        )

    def commit(self, batch: FinishedBatch) -> None:
        """Say which files are those of a batch, and remove those of earlier tries.

        Raises:
            StateError: It cannot be written, or has listed another number of dead letters.
        """
        files = dict(note[_NOTE] for note in batch.notes if _NOTE in note)
        listing = f"{self._batch(batch.number)}.json"
        rows = sum(files.values())
        if batch.same_rows and self._store.exists(listing):
            had = sum(json.loads(self._store.get(listing)).values())
            if had != rows:
                place = f"as dead letters to '{self.folder}'"
                raise other_rows("folder", batch.number, had, rows, place)
        if files:
            self._store.put(listing, json.dumps(files, sort_keys=True).encode())
        for name in self._store.list(f"{self._batch(batch.number)}/"):
            if name not in files:
                self._store.delete(name)

    def delivered(self, batch: int) -> bool:
        """Tell whether dead letters of a batch, or of a later one, are there."""
        found = self._store.list(f"{self._mine}/")
        return any(_number(name) >= batch for name in found if name.endswith(".json"))

    def finish(self) -> None:
        """Do nothing: those of each batch were there when it was committed."""

    @property
    def _store(self) -> LocalStore:
        return LocalStore(self.folder)

    @property
    def _mine(self) -> str:
        return f"{self.state}-{self.generation}"

    def _batch(self, number: int) -> str:
        return f"{self._mine}/{number}"


def local_letters(folder: Path) -> list[Letter]:
    """Return the dead letters in a folder, oldest batch first.

    Raises:
        StateError: They cannot be read.
    """
    store = LocalStore(folder)
    listings = [name for name in store.list("") if name.endswith(".json")]
    listings.sort(key=lambda name: (store.path(name).stat().st_mtime_ns, name))
    return [letter for name in listings for letter in _of_batch(store, name)]


def _of_batch(store: LocalStore, listing: str) -> Iterator[Letter]:
    number = 0
    state = listing.partition("-")[0]
    for name in json.loads(store.get(listing)):
        for row in pa.ipc.open_file(pa.py_buffer(store.get(name))).read_all().to_pylist():
            letter = letter_of(f"{state[:8]}-{_number(listing)}:{number}", row)
            number += 1
            if letter is not None:
                yield letter


def _number(listing: str) -> int:
    return int(Path(listing).stem)
