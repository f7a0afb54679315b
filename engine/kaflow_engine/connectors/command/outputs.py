"""Outputs whose rows statements take: tasks hand rows to the driver, which runs the statements."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from kaflow_engine.connectors.command.ledger import Entry, Ledger
from kaflow_engine.connectors.command.session import opened, translated
from kaflow_engine.connectors.command.sink import WITH_LEDGER, WITHOUT_LEDGER
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
from kaflow_engine.connectors.rows_in_notes import note_of_rows, rows_of_notes
from kaflow_engine.connectors.same_batch import other_records, other_rows
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.flow.records import DELETED, KEY


@dataclass(frozen=True, slots=True)
class CommandRows:
    """A task hands its rows to the driver: files of DuckDB have one writer."""

    output: Output

    def write(self, part: TaskPart) -> Written:
        """Hand over the rows of a task."""
        note = note_of_rows(self.output, part.rows)
        part.passing("rows_produced")
        return Written(rows={self.output.name: part.rows.num_rows}, notes=(note,))


@dataclass(frozen=True, slots=True)
class CommandSink:
    """Runs the statements over the rows of all tasks of a batch."""

    output: Output
    owner: Owner
    held: Entry | None
    """What the ledger had when the run began; None without a ledger."""

    @property
    def capabilities(self) -> Capabilities:
        """What statements promise."""
        return WITHOUT_LEDGER if self.held is None else WITH_LEDGER

    def commit(self, batch: FinishedBatch) -> None:
        """Run the statements in one transaction, unless the ledger has the batch.

        Raises:
            TakenOver: A newer run has begun.
            StateError: The ledger has another batch of that number, or other rows of it.
            CommandAway: A database is in use.
            CommandUnfit: A statement fails.
        """
        rows = rows_of_notes(self.output, batch.notes)
        if rows is None or not rows.num_rows:
            return
        with opened(self.output) as connection:
            with translated(self.output, f"batch {batch.number}"):
                _load(connection, self.output, rows)
                connection.begin()
                if self.held is None:
                    self._run(connection, batch.number)
                else:
                    self._once(connection, batch, rows.num_rows)
                connection.commit()

    def delivered(self, batch: int) -> bool:
        """Tell whether the ledger had a batch, or a later one, when the run began."""
        return self.held is not None and self.held.batch >= batch

    def finish(self) -> None:
        """Do nothing: every batch was visible when it was done."""

    def _once(self, connection: duckdb.DuckDBPyConnection, batch: FinishedBatch, rows: int) -> None:
        ledger = Ledger(self.output, self.owner)
        found = ledger.require_newest(connection)
        if found.batch == batch.number:
            _require_same(self.output, found, batch, rows)
        if found.batch < batch.number:
            self._run(connection, batch.number)
            new = Entry(owner=self.owner, batch=batch.number, mark=batch.mark, rows=rows)
            ledger.write(connection, new)

    def _run(self, connection: duckdb.DuckDBPyConnection, number: int) -> None:
        connection.execute(_sql(self.output, number))


def _require_same(output: Output, held: Entry, batch: FinishedBatch, rows: int) -> None:
    ledger = str(output.settings["ledger"])
    if held.mark != batch.mark:
        raise other_records("ledger", ledger, batch.number)
    if batch.same_rows and held.rows != rows:
        place = f"as ledger '{ledger}' says"
        raise other_rows("ledger", batch.number, held.rows, rows, place)


def _sql(output: Output, number: int) -> str:
    return str(output.settings["sql"]).replace("{batch}", str(number))


def _load(connection: duckdb.DuckDBPyConnection, output: Output, rows: pa.Table) -> None:
    """Make `batch`: the output's columns, and what happens to a row."""
    connection.register("incoming", rows)
    stays = literal("upsert" if output.changes else "insert")
    columns = [
        *(identifier(column.name) for column in output.columns),
        f"CASE WHEN {identifier(DELETED)} THEN 'delete' ELSE {stays} END AS _op",
        f"{identifier(KEY)} AS _key",
        "row_number() OVER () AS _row",
    ]
    connection.execute(f"CREATE TEMP TABLE batch AS SELECT {', '.join(columns)} FROM incoming")


def _try(connection: duckdb.DuckDBPyConnection, output: Output, columns: pa.Schema) -> None:
    """Run the statements over no rows, and take back what they did, unless they write files."""
    sql = _sql(output, 0)
    if all(each.type != duckdb.StatementType.COPY for each in connection.extract_statements(sql)):
        _load(connection, output, columns.empty_table())
        connection.begin()
        connection.execute(sql)
        connection.rollback()


class CommandOutlet:
    """Opens outputs for statements."""

    def task(self, output: Output, owner: Owner) -> CommandRows:
        """Return what hands rows to the driver."""
        return CommandRows(output)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Try the statements, and return what the ledger has, from whatever state."""
        with opened(output) as connection:
            with translated(output, "trying the statements"):
                _try(connection, output, columns)
            with translated(output, "looking at the ledger"):
                return Ledger(output, owner).holdings(connection) if _has_ledger(output) else ()

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make an output that of another state."""
        if _has_ledger(output):
            with opened(output) as connection, translated(output, "handing the ledger over"):
                connection.begin()
                Ledger(output, owner).hand_over(connection)
                connection.commit()

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Make the ledger that of this run."""
        if not _has_ledger(output):
            return CommandSink(output, owner, None)
        with opened(output) as connection, translated(output, "opening the ledger"):
            connection.begin()
            held = Ledger(output, owner).begin(connection)
            connection.commit()
            return CommandSink(output, owner, held)


def _has_ledger(output: Output) -> bool:
    return bool(output.settings.get("ledger"))
