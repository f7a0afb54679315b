"""Rows into a SQLite file, exactly once: the number of their batch is committed with them."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from kaflow_engine.api.sinks import (
    Bounded,
    Capabilities,
    Column,
    FinishedBatch,
    Holding,
    Output,
    Owner,
    SinkUnfit,
    StateError,
    TakenOver,
    TaskPart,
    Unfit,
    Written,
    json_rows,
    slots_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

CAPABILITIES = Capabilities(
    accepts=frozenset({"append"}),
    commit="task",
    guarantee="exactly_once",
    reason="rows and the number of their batch are one transaction",
    ordered=True,
    backfills=False,
)


_LAST = "SELECT batch, rows FROM kaflow_ledger WHERE (state, generation, slot) = (?, ?, ?)"


class Options(BaseModel):
    """What an author may say under `options`."""

    model_config = ConfigDict(extra="forbid")

    file: str
    """The SQLite file; it is created unless it is there."""


class SqliteFiles:
    """The kind of sink, as planning asks it; light to load."""

    options = Options

    @property
    def outlet(self) -> "Files":
        """What opens outputs."""
        return Files()

    def capabilities(self, delivery: str, settings: object) -> Capabilities:
        """Return what it promises, whatever the author asks for."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: object) -> Sequence[Unfit]:
        """Return columns that it cannot keep; rows are kept as JSON, which takes all."""
        return ()


class Files:
    """Opens outputs, in tasks and on the driver."""

    def task(self, output: Output, owner: Owner) -> "Rows":
        """Return what tasks write with; it is pickled."""
        return Rows(output, owner)

    def look(self, output: Output, columns: "pa.Schema", owner: Owner) -> Sequence[Holding]:
        """Return what the file holds, from whatever state; nothing is changed by looking."""
        with transaction(output) as file:
            asked = "SELECT state, generation, max(batch) FROM kaflow_ledger GROUP BY 1, 2"
            found = file.execute(asked).fetchall()
        return [Holding(state=s, generation=g, batch=b, table=output.name) for s, g, b in found]

    def hand_over(self, output: Output, columns: "pa.Schema", owner: Owner) -> None:
        """Make the file that of another state: whoever had it can add no more."""
        begin(output, owner)

    def open(
        self, output: Output, columns: "pa.Schema", owner: Owner, bounded: Bounded | None
    ) -> "Rows":
        """Begin a run: what earlier runs still do must fail from here on."""
        begin(output, owner)
        return Rows(output, owner)


@dataclass(frozen=True)
class Rows:
    """What tasks write with, and what the driver asks."""

    output: Output
    owner: Owner
    capabilities: Capabilities = CAPABILITIES

    def write(self, part: TaskPart) -> Written:
        """Write the rows of delivery partitions that the ledger does not have."""
        rows = [row.row for row in json_rows(self.output, part.rows)]
        own = (self.owner.state, self.owner.generation)
        count = 0
        with transaction(self.output) as file:
            if file.execute("SELECT * FROM kaflow_run").fetchone() != (*own, self.owner.epoch):
                raise TakenOver(f"another run has taken over output '{self.output.name}'")
            for slot, places in slots_of(part.rows).items():
                batch, had = file.execute(_LAST, (*own, slot)).fetchone() or (0, 0)
                if batch == part.batch and had != len(places):
                    raise StateError(f"batch {batch} had {had} rows, and has {len(places)} now")
                if batch >= part.batch:
                    continue  # an earlier try of this batch wrote them
                file.executemany("INSERT INTO rows VALUES (?)", [(rows[at],) for at in places])
                entry = (*own, slot, part.batch, len(places))
                file.execute("INSERT OR REPLACE INTO kaflow_ledger VALUES (?, ?, ?, ?, ?)", entry)
                count += len(places)
            part.passing("before_commit")
        return Written(rows={self.output.name: count})

    def commit(self, batch: FinishedBatch) -> None:
        """Do nothing: tasks have committed, and looked."""

    def delivered(self, batch: int) -> bool:
        """Tell whether the ledger has a batch, or a later one."""
        own = (self.owner.state, self.owner.generation)
        with transaction(self.output) as file:
            asked = "SELECT max(batch) FROM kaflow_ledger WHERE (state, generation) = (?, ?)"
            return (file.execute(asked, own).fetchone()[0] or 0) >= batch

    def finish(self) -> None:
        """Do nothing: every batch was visible when its tasks were done."""


def begin(output: Output, owner: Owner) -> None:
    """Note whose the file is."""
    with transaction(output) as file:
        file.execute("DELETE FROM kaflow_run")
        file.execute(
            "INSERT INTO kaflow_run VALUES (?, ?, ?)", (owner.state, owner.generation, owner.epoch)
        )


@contextmanager
def transaction(output: Output) -> Generator[sqlite3.Connection]:
    """Open the file for one transaction; another one waits for its end."""
    try:
        with closing(sqlite3.connect(str(output.settings["file"]), timeout=60)) as file:
            file.executescript(
                "CREATE TABLE IF NOT EXISTS rows (row TEXT);"
                "CREATE TABLE IF NOT EXISTS kaflow_run (state TEXT, generation INT, epoch INT);"
                "CREATE TABLE IF NOT EXISTS kaflow_ledger (state TEXT, generation INT, slot INT,"
                " batch INT, rows INT, PRIMARY KEY (state, generation, slot))"
            )
            with file:
                file.execute("BEGIN IMMEDIATE")
                yield file
    except sqlite3.Error as error:
        raise SinkUnfit(f"'{output.settings['file']}' cannot be written: {error}") from error
