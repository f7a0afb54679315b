"""Postgres tables as outputs: what tasks write, what the driver opens, fences and checks."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kaflow_engine.connectors.contract import (
    Bounded,
    Output,
    Owner,
    Sink,
    TaskPart,
    Written,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.postgres.batch_numbers import (
    forget_batches,
    numbered,
    with_batch_column,
)
from kaflow_engine.connectors.postgres.capabilities import CAPABILITIES
from kaflow_engine.connectors.postgres.client import kept_connection, open_connection, translated
from kaflow_engine.connectors.postgres.ledger import Ledger
from kaflow_engine.connectors.postgres.merged.before import (
    added,
    before_ddl,
    keep_rows,
    lacks_before,
)
from kaflow_engine.connectors.postgres.names import statement
from kaflow_engine.connectors.postgres.reading import read_rows
from kaflow_engine.connectors.postgres.rows import RowWriter
from kaflow_engine.connectors.postgres.table import require_fit, schema_ddl, table_ddl
from kaflow_engine.connectors.tables.ledger import LedgerTable, write_slots
from kaflow_engine.connectors.tables.retries import with_retries

if TYPE_CHECKING:
    from psycopg import Connection

LOGGER = logging.getLogger("kaflow.postgres")


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
        return with_retries(lambda: self._tried(part))

    def _tried(self, part: TaskPart) -> Written:
        with kept_connection(self.output) as connection:
            with translated(self.output, "writing rows"):
                return self._in_transaction(connection, part)

    def _in_transaction(self, connection: "Connection[Any]", part: TaskPart) -> Written:
        ledger = Ledger(self.output, self.owner)
        writer = RowWriter(connection, self.output)
        part = replace(part, rows=numbered(self.output, part.rows, part.batch))
        with connection.transaction():
            ledger.require_newest(connection, part.epoch)
            held = ledger.entries(connection)
            new, written = write_slots(
                self.output, part, held, lambda slot, rows: writer.write(rows)
            )
            forget_batches(connection, self.output, part.batch)
            part.passing("rows_produced")
            ledger.write(connection, new)
            part.passing("before_commit")
        part.passing("committed")
        return written


class PostgresOutlet:
    """Opens tables, and reads them."""

    def read(self, output: Output, since: int, most: int) -> pa.Table:
        """Return rows of a table, whatever their time."""
        return read_rows(output, most)

    def task(self, output: Output, owner: Owner) -> PostgresRows:
        """Return what writes rows."""
        return PostgresRows(with_batch_column(output), owner)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Return what the ledger of the table has, from whatever state."""
        output = with_batch_column(output)
        with open_connection(output) as connection, translated(output, "looking at the table"):
            require_fit(connection, output)
            ledger = Ledger(output, owner)
            return tuple(ledger.holdings(connection)) if ledger.exists(connection) else ()

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make a table that of another state: whoever had it can add no more."""
        output = with_batch_column(output)
        with open_connection(output) as connection, translated(output, "handing the table over"):
            _create(connection, output)
            ledger = Ledger(output, owner)
            with connection.transaction():
                _keep_before(connection, output, ledger)
                ledger.hand_over(connection)

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Create what is missing, and end the transactions of earlier runs."""
        output = with_batch_column(output)
        with open_connection(output) as connection, translated(output, "opening the table"):
            _create(connection, output)
            ledger = Ledger(output, owner)
            with connection.transaction():
                _keep_before(connection, output, ledger)
                ledger.begin(connection)
                return LedgerTable(output, CAPABILITIES, ledger.entries(connection))


def _create(connection: "Connection[Any]", output: Output) -> None:
    """Create the table where that is asked for, and the ledger."""
    ledger = Ledger(output, Owner(state="", generation=0))
    there = require_fit(connection, output)
    wanted: tuple[str, ...] = () if ledger.exists(connection) else ledger.ddl
    if lacks_before(connection, output):
        wanted = (*wanted, before_ddl(output))
    if not there:
        wanted = (*schema_ddl(connection, output), table_ddl(output), *wanted)
    if not wanted:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        for ddl in wanted:
            connection.execute(statement(ddl))
    if not there:
        LOGGER.info("created table '%s'", output.settings["table"])


def _keep_before(connection: "Connection[Any]", output: Output, ledger: Ledger) -> None:
    """Copy the rows of a table to which they are added, unless a state has written to it."""
    if added(output) and not ledger.holdings(connection):
        keep_rows(connection, output)


_LOCK = 0x6B61666C6F77
"""Two statements that create one table at once would fail on the system's own tables."""
