"""The ledger of an output: whose it is, and the last batch that its statements have run over.

It is a table of one row in the database that the statements write, and changes in their
transaction; DuckDB refuses transactions that write to two databases.
"""

from dataclasses import dataclass, replace

import duckdb

from kaflow_engine.connectors.contract import Output, Owner
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import TakenOver


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a ledger says."""

    owner: Owner
    batch: int = 0
    """0: none yet."""
    mark: str = ""
    rows: int = 0
    """Of the batch."""


class Ledger:
    """The ledger of one output."""

    def __init__(self, output: Output, owner: Owner) -> None:
        self._name, self._owner = str(output.settings["ledger"]), owner
        self._table = ".".join(identifier(part) for part in self._name.split("."))

    def read(self, connection: duckdb.DuckDBPyConnection) -> Entry | None:
        """Return what it says; None: nothing yet.

        Raises:
            duckdb.Error: It is not there, or something else is.
        """
        row = connection.execute(
            f"SELECT state, generation, epoch, batch, mark, rows FROM {self._table}"
        ).fetchone()
        if row is None:
            return None
        state, generation, epoch, batch, mark, rows = row
        owner = Owner(state=state, generation=generation, epoch=epoch)
        return Entry(owner=owner, batch=batch, mark=mark, rows=rows)

    def holdings(self, connection: duckdb.DuckDBPyConnection) -> tuple[Holding, ...]:
        """Return what it says as any sink does; nothing where it does not exist yet."""
        try:
            found = self.read(connection)
        except duckdb.CatalogException:
            return ()
        if found is None:
            return ()
        return (
            Holding(
                state=found.owner.state,
                generation=found.owner.generation,
                batch=found.batch,
                mark=found.mark,
                table=self._name,
                kept_in="ledger",
            ),
        )

    def begin(self, connection: duckdb.DuckDBPyConnection) -> Entry:
        """Make the output that of a run, within a transaction; returns what was there.

        Raises:
            TakenOver: A newer run has begun.
        """
        found = self._created(connection)
        if found is not None and found.owner.epoch > self._owner.epoch:
            raise self._taken_over()
        ours = Entry(owner=self._owner)
        if found is not None and _state(found.owner) == _state(self._owner):
            ours = replace(found, owner=self._owner)
        self.write(connection, ours)
        return ours

    def hand_over(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the output that of another state: whoever had it can add no more."""
        self._created(connection)
        self.write(connection, Entry(owner=replace(self._owner, epoch=0)))

    def require_newest(self, connection: duckdb.DuckDBPyConnection) -> Entry:
        """Return what it says to the newest run; no other can begin before the transaction ends.

        Raises:
            TakenOver: Another has begun.
        """
        found = self.read(connection)
        if found is None or found.owner != self._owner:
            raise self._taken_over()
        return found

    def write(self, connection: duckdb.DuckDBPyConnection, entry: Entry) -> None:
        """Replace what it says."""
        owner = entry.owner
        connection.execute(f"DELETE FROM {self._table}")
        connection.execute(
            f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?, ?)",
            [owner.state, owner.generation, owner.epoch, entry.batch, entry.mark, entry.rows],
        )

    def _created(self, connection: duckdb.DuckDBPyConnection) -> Entry | None:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} (state VARCHAR, generation BIGINT, "
            "epoch BIGINT, batch BIGINT, mark VARCHAR, rows BIGINT)"
        )
        return self.read(connection)

    def _taken_over(self) -> TakenOver:
        return TakenOver(
            f"another run has taken over ledger '{self._name}'",
            hint="a pipeline has one run at a time; stop this one",
        )


def _state(owner: Owner) -> tuple[str, int]:
    return owner.state, owner.generation
