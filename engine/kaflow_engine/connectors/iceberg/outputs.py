"""Iceberg tables as outputs: tasks hand over rows, the driver commits those of a batch."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

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
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.iceberg.capabilities import CAPABILITIES
from kaflow_engine.connectors.iceberg.catalog import opened
from kaflow_engine.connectors.iceberg.held import Held
from kaflow_engine.connectors.iceberg.rows import handed_over, parted
from kaflow_engine.connectors.iceberg.table import (
    as_the_table_has_it,
    found_table,
    name_of,
    ready_table,
)
from kaflow_engine.connectors.read_back import nothing_there, of_columns
from kaflow_engine.connectors.rows_in_notes import note_of_rows
from kaflow_engine.connectors.same_batch import other_records, other_rows
from kaflow_engine.connectors.tables.retries import with_retries
from kaflow_engine.errors import TakenOver
from kaflow_engine.flow.records import DELETED

if TYPE_CHECKING:
    from pyiceberg.table import Table

_COUNT = "iceberg_rows"
_NO_RETRIES = {"commit.retry.num-retries": "0"}
"""Of pyiceberg, which would add a batch again without a look at what the table has by then."""


@dataclass(frozen=True, slots=True)
class IcebergRows:
    """A task hands its rows to the driver, which commits all of a batch at once."""

    output: Output

    def write(self, part: TaskPart) -> Written:
        """Hand over the rows of a task."""
        rows, refused = parted(self.output, part.rows)
        part.passing("rows_produced")
        name, count = self.output.name, part.rows.num_rows
        return Written(
            rows={name: count - len(refused)},
            notes=(note_of_rows(self.output, rows), {_COUNT: {name: count}}),
            refused=tuple(refused),
        )


class IcebergTable:
    """A table as the driver of a run sees it."""

    capabilities: Capabilities = CAPABILITIES

    def __init__(self, output: Output, owner: Owner, held: Held | None) -> None:
        self._output, self._owner = output, owner
        self._before = held
        """What the table said when the run began."""

    def commit(self, batch: FinishedBatch) -> None:
        """Commit the rows of a batch, unless the table has that very batch.

        Raises:
            TakenOver: The table became another state's since it was opened.
            StateError: It has another batch of that number, or other rows of it.
            IcebergAway: Catalog or storage do not answer, or others write all the time.
            IcebergUnfit: They refuse, or the table is not what it was.
        """
        rows = handed_over(self._output, batch.notes)
        count = sum(note.get(_COUNT, {}).get(self._output.name, 0) for note in batch.notes)
        with_retries(lambda: self._tried(batch, rows, count))

    def _tried(self, batch: FinishedBatch, rows: pa.Table | None, count: int) -> None:
        with opened(self._output, f"committing batch {batch.number}") as catalog:
            table = catalog.load_table(name_of(self._output))
            held = self._held(table)
            if held is not None and held.batch >= batch.number:
                _require_same(self._output, held, batch, count)
            elif rows is not None and rows.num_rows:
                self._add(table, batch, rows, count)

    def _held(self, table: "Table") -> Held | None:
        """Return what the table has of this state."""
        held = Held.of(table.properties)
        if held is None or held.is_of(self._owner):
            return held
        if self._before is None or not held.is_of(_owner_of(self._before)):
            raise TakenOver(
                f"another state of the pipeline has taken over table '{name_of(self._output)}'",
                hint="a pipeline has one run at a time; stop this one",
            )
        return None

    def _add(self, table: "Table", batch: FinishedBatch, rows: pa.Table, count: int) -> None:
        output, owner = self._output, self._owner
        held = Held(
            state=owner.state,
            generation=owner.generation,
            batch=batch.number,
            mark=batch.mark,
            rows=count,
        )
        gone = rows[DELETED]
        given = rows.drop_columns([DELETED])
        added = as_the_table_has_it(output, table.schema(), given.filter(pc.invert(gone)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # keys without a row are no news
            with _without_retries(table).transaction() as changes:
                changes.set_properties(held.properties)
                if output.changes:
                    changes.delete(_any_of(output, given), snapshot_properties=held.properties)
                if added.num_rows:
                    changes.append(added, snapshot_properties=held.properties)

    def delivered(self, batch: int) -> bool:
        """Tell whether the table had a batch, or a later one, when the run began."""
        before = self._before
        return before is not None and before.is_of(self._owner) and before.batch >= batch

    def finish(self) -> None:
        """Do nothing: every batch was a commit."""


def _any_of(output: Output, rows: pa.Table) -> Any:
    """Return the predicate for rows with any of the keys."""
    from pyiceberg.expressions import In

    assert output.key is not None
    keys = set(rows[output.key].to_pylist())
    return In(output.key, keys)  # pyright: ignore[reportCallIssue]  # it is a model with __new__


def _without_retries(table: "Table") -> "Table":
    """Return a table whose commits fail where another one came first; nothing is written for it."""
    from pyiceberg.table import Table

    properties = {**table.metadata.properties, **_NO_RETRIES}
    metadata = table.metadata.model_copy(update={"properties": properties})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def _owner_of(held: Held) -> Owner:
    return Owner(state=held.state, generation=held.generation)


def _require_same(output: Output, held: Held, batch: FinishedBatch, count: int) -> None:
    if held.batch > batch.number:
        return
    if held.mark != batch.mark:
        raise other_records("table", name_of(output), batch.number)
    if batch.same_rows and held.rows != count:
        place = f"to table '{name_of(output)}'"
        raise other_rows("table", batch.number, held.rows, count, place)


class IcebergOutlet:
    """Opens tables, and reads them."""

    def read(self, output: Output, since: int, most: int) -> pa.Table:
        """Return rows of a table, whatever their time."""
        with opened(output, "reading the table") as catalog:
            if not catalog.table_exists(name_of(output)):
                raise nothing_there(output, f"table '{name_of(output)}'")
            names = tuple(column.name for column in output.columns)
            scan = catalog.load_table(name_of(output)).scan(selected_fields=names, limit=most)
            return of_columns(output, scan.to_arrow())

    def task(self, output: Output, owner: Owner) -> IcebergRows:
        """Return what hands rows to the driver."""
        return IcebergRows(output)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Return the last batch that the table has, from whatever state."""
        with opened(output, "looking at the table") as catalog:
            table = found_table(catalog, output)
            held = None if table is None else Held.of(table.properties)
            return () if held is None else (held.holding(name_of(output)),)

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make a table that of another state: whoever had it can add no more."""
        with opened(output, "handing the table over") as catalog:
            new = Held(state=owner.state, generation=owner.generation)
            with ready_table(catalog, output).transaction() as changes:
                changes.set_properties(new.properties)

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Create the table, or the columns that it lacks."""
        with opened(output, "opening the table") as catalog:
            return IcebergTable(output, owner, Held.of(ready_table(catalog, output).properties))
