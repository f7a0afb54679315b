"""ClickHouse tables as outputs: what tasks write, what the driver opens, fences and checks."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.ledger import Ledger, Run
from kaflow_engine.connectors.clickhouse.reading import read_rows
from kaflow_engine.connectors.clickhouse.rows import RowWriter
from kaflow_engine.connectors.clickhouse.sink import ClickHouseTables
from kaflow_engine.connectors.clickhouse.table import require_fit, table_ddl
from kaflow_engine.connectors.contract import (
    Bounded,
    Output,
    Owner,
    Refused,
    Sink,
    TaskPart,
    Written,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.tables.ledger import LedgerTable, write_slots
from kaflow_engine.connectors.tables.retries import with_retries

LOGGER = logging.getLogger("kaflow.clickhouse")


@dataclass(frozen=True, slots=True)
class ClickHouseRows:
    """A task writes blocks of rows, and then what the ledger says of them."""

    output: Output
    owner: Owner

    def write(self, part: TaskPart) -> Written:
        """Write the rows of delivery partitions that the ledger does not have.

        Raises:
            TakenOver: A newer run has begun.
            StateError: The ledger has another batch of that number.
            ClickHouseAway: The server does not answer, or is too busy.
            ClickHouseUnfit: The table, the login or its rights are not what they were.
        """
        return with_retries(lambda: self._tried(part))

    def _tried(self, part: TaskPart) -> Written:
        ledger = Ledger(self.output, self.owner)
        run = ledger.require_newest(part.epoch)
        held = ledger.entries()
        part.passing("before_commit")

        def write(slot: int, rows: pa.Table) -> list[Refused]:
            refused = self._writer(part, run, slot).write(rows)
            part.passing("piece_committed")
            return refused

        new, written = write_slots(self.output, part, held, write)
        ledger.write(new)
        part.passing("committed")
        return written

    def _writer(self, part: TaskPart, run: Run, slot: int) -> RowWriter:
        of = (self.owner.state, self.owner.generation, self.output.name, slot, part.batch)
        token = "/".join(map(str, of))
        return RowWriter(self.output, token=token, version=run.base + part.batch)


class ClickHouseOutlet:
    """Opens tables, and reads them."""

    def read(self, output: Output, since: int, most: int) -> pa.Table:
        """Return rows of a table, whatever their time."""
        return read_rows(output, most)

    def task(self, output: Output, owner: Owner) -> ClickHouseRows:
        """Return what writes rows."""
        return ClickHouseRows(output, owner)

    def look(self, output: Output, columns: pa.Schema, owner: Owner) -> Sequence[Holding]:
        """Return what the ledger of the table has."""
        require_fit(output)
        ledger = Ledger(output, owner)
        return tuple(ledger.holdings()) if ledger.exists() else ()

    def hand_over(self, output: Output, columns: pa.Schema, owner: Owner) -> None:
        """Make a table that of another state: whoever had it can add no more."""
        _create(output)
        Ledger(output, owner).hand_over()

    def open(
        self, output: Output, columns: pa.Schema, owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Create what is missing, and fence earlier runs."""
        _create(output)
        ledger = Ledger(output, owner)
        ledger.begin()
        capabilities = ClickHouseTables().capabilities(output.delivery, output.settings)
        return LedgerTable(output, capabilities, ledger.entries())


def _create(output: Output) -> None:
    """Create the table where that is asked for, and the ledger."""
    if not require_fit(output):
        Server.of(output).run("creating the table", table_ddl(output))
        LOGGER.info("created table '%s'", output.settings["table"])
    ledger = Ledger(output, Owner(state="", generation=0))
    if not ledger.exists():
        ledger.create()
