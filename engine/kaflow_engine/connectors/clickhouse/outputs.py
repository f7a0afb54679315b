"""ClickHouse tables as outputs: what tasks write, what the driver opens, fences and checks."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.errors import ClickHouseAway
from kaflow_engine.connectors.clickhouse.ledger import Entry, Ledger, Run
from kaflow_engine.connectors.clickhouse.rows import RowWriter
from kaflow_engine.connectors.clickhouse.sink import AT_LEAST_ONCE, EXACTLY_ONCE
from kaflow_engine.connectors.clickhouse.table import require_fit, table_ddl
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
from kaflow_engine.connectors.same_batch import other_records, other_rows
from kaflow_engine.connectors.slots import Places, slots_of

_SLOTS = "clickhouse_slots"
_LATER = Entry(batch=0, mark="", rows=0)
_PAUSES = (0.1, 0.5, 2.0)
"""Seconds before rows are tried again; what lasts longer, the run waits for."""


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
        for pause in (*_PAUSES, None):
            try:
                return self._tried(part)
            except ClickHouseAway:
                if pause is None:
                    raise
                time.sleep(pause)
        raise AssertionError

    def _tried(self, part: TaskPart) -> Written:
        ledger, slots = Ledger(self.output, self.owner), slots_of(part.rows)
        run = ledger.require_newest(part.epoch)
        held = ledger.entries()
        found: dict[int, Entry] = {}
        new: dict[int, Entry] = {}
        part.passing("before_commit")
        for slot, places in slots.items():
            before = held.get(slot)
            if before is not None and before.batch >= part.batch:
                _require_mark(self.output, part, before)
                found[slot] = before if before.batch == part.batch else _LATER
            else:
                found[slot] = new[slot] = self._written(part, run, slot, places)
                part.passing("piece_committed")
        ledger.write(new)
        part.passing("committed")
        refused = [
            Refused(int(slots[slot][n]), error, why)
            for slot, entry in found.items()
            for n, error, why in entry.refused
        ]
        note = {_SLOTS: {self.output.name: [[s, len(p)] for s, p in sorted(slots.items())]}}
        return Written(
            rows={self.output.name: sum(one.rows - len(one.refused) for one in new.values())},
            notes=(note,),
            refused=tuple(sorted(refused, key=lambda one: one.row)),
        )

    def _written(self, part: TaskPart, run: Run, slot: int, places: Places) -> Entry:
        """Write the rows of a delivery partition."""
        of = (self.owner.state, self.owner.generation, self.output.name, slot, part.batch)
        writer = RowWriter(self.output, token="/".join(map(str, of)), version=run.base + part.batch)
        refused = writer.write(part.rows.take(pa.array(places, pa.int64())))
        return Entry(
            batch=part.batch,
            mark=part.mark,
            rows=len(places),
            refused=tuple((one.place, one.error, one.why) for one in refused),
        )


def _require_mark(output: Output, part: TaskPart, held: Entry) -> None:
    if held.batch == part.batch and held.mark != part.mark:
        raise other_records("table", str(output.settings["table"]), part.batch)


@dataclass(frozen=True, slots=True)
class ClickHouseTable:
    """A table as the driver of a run sees it: its tasks write, it checks."""

    output: Output
    held: Mapping[int, Entry]
    """What the ledger had when the run began."""

    @property
    def capabilities(self) -> Capabilities:
        """What a table promises."""
        return EXACTLY_ONCE if self.output.delivery == "exactly_once" else AT_LEAST_ONCE

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


class ClickHouseOutlet:
    """Opens tables."""

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
        return ClickHouseTable(output, ledger.entries())


def _create(output: Output) -> None:
    """Create the table where that is asked for, and the ledger."""
    if not require_fit(output):
        Server(output).run("creating the table", table_ddl(output))
    ledger = Ledger(output, Owner(state="", generation=0))
    if not ledger.exists():
        ledger.create()
