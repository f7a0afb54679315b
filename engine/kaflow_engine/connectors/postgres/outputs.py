"""Postgres tables as outputs: what tasks write, what the driver opens, fences and checks."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kaflow_engine.connectors.contract import (
    Bounded,
    Capabilities,
    FinishedBatch,
    Output,
    Owner,
    Refused,
    Sink,
    TaskPart,
    Written,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.postgres.client import kept_connection, open_connection, translated
from kaflow_engine.connectors.postgres.errors import PostgresAway
from kaflow_engine.connectors.postgres.ledger import Entry, Ledger
from kaflow_engine.connectors.postgres.names import statement
from kaflow_engine.connectors.postgres.rows import RowWriter, only
from kaflow_engine.connectors.postgres.sink import CAPABILITIES
from kaflow_engine.connectors.postgres.table import require_fit, table_ddl
from kaflow_engine.connectors.same_batch import other_records, other_rows
from kaflow_engine.connectors.slots import slots_of

if TYPE_CHECKING:
    from psycopg import Connection

_SLOTS = "postgres_slots"
_LATER = Entry(batch=0, mark="", rows=0)
_PAUSES = (0.1, 0.5, 2.0)
"""Seconds before a transaction is tried again; what lasts longer, the run waits for."""


@dataclass(frozen=True, slots=True)
class PostgresRows:
    """A task writes its rows, and what the ledger says of them, in one transaction."""

    output: Output
    owner: Owner

    def write(self, part: TaskPart) -> Written:
        """Write the rows of delivery partitions that the ledger does not have.

        Raises:
            TakenOver: A newer run has begun.
            StateError: The ledger has another batch of that number.
            PostgresAway: The server does not answer, or is too busy.
            PostgresUnfit: The table, the login or its rights are not what they were.
        """
        for pause in (*_PAUSES, None):
            try:
                return self._tried(part)
            except PostgresAway:
                if pause is None:
                    raise
                time.sleep(pause)
        raise AssertionError

    def _tried(self, part: TaskPart) -> Written:
        with kept_connection(self.output) as connection:
            with translated(self.output, "writing rows"):
                return self._in_transaction(connection, part)

    def _in_transaction(self, connection: "Connection[Any]", part: TaskPart) -> Written:
        ledger, slots = Ledger(self.output, self.owner), slots_of(part.rows)
        refused: list[Refused] = []
        written = 0
        with connection.transaction():
            ledger.require_newest(connection, part.epoch)
            held = ledger.entries(connection)
            new: dict[int, Entry] = {}
            for slot, places in slots.items():
                before = held.get(slot)
                if before is not None and before.batch >= part.batch:
                    _require_mark(self.output, part, before)
                    entry = before if before.batch == part.batch else _LATER
                else:
                    found = RowWriter(connection, self.output).write(only(part.rows, places))
                    entry = new[slot] = Entry(
                        batch=part.batch,
                        mark=part.mark,
                        rows=len(places),
                        refused=tuple((one.place, one.error, one.why) for one in found),
                    )
                    written += len(places) - len(found)
                refused += [Refused(int(places[n]), error, why) for n, error, why in entry.refused]
            part.passing("rows_produced")
            ledger.write(connection, new)
            part.passing("before_commit")
        part.passing("committed")
        note = {_SLOTS: {self.output.name: [[s, len(p)] for s, p in sorted(slots.items())]}}
        return Written(
            rows={self.output.name: written},
            notes=(note,),
            refused=tuple(sorted(refused, key=lambda one: one.row)),
        )


def _require_mark(output: Output, part: TaskPart, held: Entry) -> None:
    if held.batch == part.batch and held.mark != part.mark:
        raise other_records("table", str(output.settings["table"]), part.batch)


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table as the driver of a run sees it: its tasks commit, it checks."""

    output: Output
    held: Mapping[int, Entry]
    """What the ledger had when the run began, and no earlier run could write any more."""

    @property
    def capabilities(self) -> Capabilities:
        """What a table promises."""
        return CAPABILITIES

    def commit(self, batch: FinishedBatch) -> None:
        """Check that a batch that runs again has the rows that it had."""
        number = batch.number
        before = {slot: e.rows for slot, e in self.held.items() if e.batch == number}
        if not before or not batch.same_rows:
            return
        now: Counter[int] = Counter()
        for note in batch.notes:
            for slot, rows in note.get(_SLOTS, {}).get(self.output.name, ()):
                now[slot] += rows
        for slot, had in sorted(before.items()):
            if now[slot] != had:
                place = f"of delivery partition {slot} to table '{self.output.settings['table']}'"
                raise other_rows("table", number, had, now[slot], place)

    def delivered(self, batch: int) -> bool:
        """Tell whether the ledger had a batch, or a later one, when the run began."""
        return any(entry.batch >= batch for entry in self.held.values())

    def finish(self) -> None:
        """Do nothing: every batch was visible when its tasks were done."""


class PostgresOutlet:
    """Opens tables."""

    def task(self, output: Output, owner: Owner) -> PostgresRows:
        """Return what writes rows."""
        return PostgresRows(output, owner)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Return what the ledger of the table has, from whatever state."""
        with open_connection(output) as connection, translated(output, "looking at the table"):
            require_fit(connection, output)
            ledger = Ledger(output, owner)
            return tuple(ledger.holdings(connection)) if ledger.exists(connection) else ()

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make a table that of another state: whoever had it can add no more."""
        with open_connection(output) as connection, translated(output, "handing the table over"):
            _create(connection, output)
            with connection.transaction():
                Ledger(output, owner).hand_over(connection)

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Create what is missing, and end the transactions of earlier runs."""
        with open_connection(output) as connection, translated(output, "opening the table"):
            _create(connection, output)
            ledger = Ledger(output, owner)
            with connection.transaction():
                ledger.begin(connection)
                return PostgresTable(output, ledger.entries(connection))


def _create(connection: "Connection[Any]", output: Output) -> None:
    """Create the table where that is asked for, and the ledger."""
    ledger = Ledger(output, Owner(state="", generation=0))
    there = require_fit(connection, output)
    wanted: tuple[str, ...] = () if ledger.exists(connection) else ledger.ddl
    if not there:
        wanted = (table_ddl(output), *wanted)
    if not wanted:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        for ddl in wanted:
            connection.execute(statement(ddl))


_LOCK = 0x6B61666C6F77
"""Two statements that create one table at once would fail on the system's own tables."""
