"""Delta tables as outputs: tasks write files, the driver commits those of a batch, or of a run."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
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
from kaflow_engine.connectors.delta.capabilities import CAPABILITIES
from kaflow_engine.connectors.delta.data_files import TableFile, write_files
from kaflow_engine.connectors.delta.table import DeltaSink, held_batches, require_fit
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.errors import StateError

_FILES = "files"
_PREFIX = "kaflow-"


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Writes the rows of a task as files that no commit names yet."""

    output: Output

    def write(self, part: TaskPart) -> Written:
        """Write files; those of a try that is not committed stay unnamed."""
        files = write_files(
            Path(self.output.place),
            self.output.partition,
            part.rows,
            f"{part.batch}-{part.epoch}-{token_hex(6)}",
        )
        part.passing("files_written")
        notes = ({_FILES: {self.output.name: [astuple(file) for file in files]}},)
        return Written(rows={self.output.name: part.rows.num_rows}, notes=notes)


class StreamTable:
    """Adds each batch to the table in a commit of its own."""

    capabilities: Capabilities = CAPABILITIES

    def __init__(self, output: Output, table: DeltaSink) -> None:
        self._output, self._table = output, table

    def commit(self, batch: FinishedBatch) -> None:
        """Add the files of a batch, unless the table has that very batch already."""
        files = files_of(batch.notes, self._output.name)
        self._table.add(batch.number, files, batch.mark, batch.same_rows)

    def delivered(self, batch: int) -> bool:
        """Tell whether the table has a batch."""
        return self._table.committed() >= batch

    def finish(self) -> None:
        """Do nothing: every batch was a commit."""


class BackfillTable:
    """Keeps the files of all batches until they take the place of what the table has of the range.

    That is the rows of the range that were made of records which the backfill has read. All others
    stay: those of records that the stream had not read when the backfill began, that lie further
    from the range than `backfill.slack`, or that their topic does not hold any more.
    """

    capabilities: Capabilities = CAPABILITIES

    def __init__(self, output: Output, table: DeltaSink, bounded: Bounded) -> None:
        """Look at what will be replaced, so that nothing is refused only at the end.

        Raises:
            StateError: The table has rows that do not name the record they were made of.
        """
        self._output, self._table, self._bounded = output, table, bounded
        self._table.check_known(bounded.replaced)

    def commit(self, batch: FinishedBatch) -> None:
        """Note the files of a batch."""
        files = files_of(batch.notes, self._output.name)
        if files:
            rows = [astuple(file) for file in files]
            self._bounded.store.put(self._noted(batch.number), json.dumps(rows).encode())

    def delivered(self, batch: int) -> bool:
        """Tell whether files of a batch are noted."""
        return self._bounded.store.exists(self._noted(batch))

    def finish(self) -> None:
        """Let what all batches wrote take its place, in one commit.

        Raises:
            StateError: Files are gone, or rows do not name the record they were made of.
        """
        if self._table.committed():  # and its files may be others by now
            return
        store = self._bounded.store
        files = [TableFile(*row) for name in self._notes() for row in json.loads(store.get(name))]
        check_there(self._output, files)
        self._bounded.require_newest()
        self._bounded.passing("before_replace")
        self._table.replace(self._bounded.replaced, files)
        self._bounded.passing("replaced")

    def _noted(self, batch: int) -> str:
        return f"{_FILES}/{self._output.name}/{batch}.json"

    def _notes(self) -> Collection[str]:
        """Return the names of what is noted, one for each batch.

        An earlier version, which knew of one table, noted its files without the name of the table.
        """
        found: dict[str, str] = {}
        for folder in (f"{_FILES}/", f"{_FILES}/{self._output.name}/"):
            names = self._bounded.store.list(folder)
            found |= {name.removeprefix(folder): name for name in names}
        return [name for batch, name in found.items() if "/" not in batch]


class DeltaOutlet:
    """Opens tables."""

    def task(self, output: Output, owner: Owner) -> TableFiles:
        """Return what writes files."""
        return TableFiles(output)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Return the last batch of the owner, and of whoever else the table belongs to."""
        folder = Path(output.place)
        require_fit(folder, columns, output.partition)
        held = held_batches(folder, writer_of(owner))
        return [_holding(writer, batch, output.name) for writer, batch in held.items()]

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make a table the owner's: whoever had it can add no more."""
        _open(output, columns, owner).own()

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Open a table, and create it or the columns that it lacks."""
        table = _open(output, columns, owner)
        if bounded is None:
            return StreamTable(output, table)
        return BackfillTable(output, table, bounded)


def writer_of(owner: Owner) -> str:
    """Return how a table knows the writer of batches."""
    return f"{_PREFIX}{owner.state}-{owner.generation}"


def files_of(notes: Sequence[Mapping[str, Any]], table: str) -> list[TableFile]:
    """Return the files that tasks wrote for a table."""
    rows: list[Any] = [row for note in notes for row in note.get(_FILES, {}).get(table, ())]
    return [TableFile(*row) for row in rows]


def check_there(output: Output, files: Sequence[TableFile]) -> None:
    """Check that files which no commit names yet are what tasks wrote.

    Raises:
        StateError: One is gone, or has another size.
    """
    for file in files:
        path = Path(output.place) / file.path
        size = path.stat().st_size if path.exists() else None
        if size != file.size:
            what = "is gone" if size is None else f"has {size} bytes instead of {file.size}"
            raise StateError(
                f"a file that the backfill wrote for table '{output.name}' {what}: {file.path}",
                hint="add --restart to begin the backfill again; "
                "vacuum tables with a retention longer than the longest backfill",
            )


def _holding(writer: str, batch: int, table: str) -> Holding:
    state, _, generation = writer.removeprefix(_PREFIX).rpartition("-")
    return Holding(state=state, generation=int(generation), batch=batch, table=table)


def _open(output: Output, columns: pa.Schema, owner: Owner) -> DeltaSink:
    return DeltaSink(Path(output.place), columns, output.partition, writer_of(owner))
