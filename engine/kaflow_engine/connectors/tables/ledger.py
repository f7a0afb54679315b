"""Ledgers beside tables: the last batch of each delivery partition, and what a batch does to it.

A task writes a delivery partition whose batch the ledger does not have, and of one that it has
tells what was refused then; the driver checks that a batch which runs again has as many rows.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kaflow_engine.connectors.contract import (
    Capabilities,
    FinishedBatch,
    Output,
    Refused,
    TaskPart,
    Written,
)
from kaflow_engine.connectors.same_batch import other_records, other_rows
from kaflow_engine.connectors.slots import slots_of
from kaflow_engine.errors import TakenOver

_NOTE = "ledger_slots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The last batch of a delivery partition."""

    batch: int
    mark: str
    rows: int
    """Of the batch; those that were refused among them."""
    refused: tuple[Refused, ...] = ()
    """By their places in the delivery partition."""

    @staticmethod
    def of(batch: int, mark: str, rows: int, refused: Iterable[tuple[int, str, str]]) -> "Entry":
        """Return what a ledger says; `refused` is what `refused_json` made."""
        return Entry(
            batch=batch, mark=mark, rows=rows, refused=tuple(Refused(*each) for each in refused)
        )

    @property
    def refused_json(self) -> str:
        """What was refused, as a ledger keeps it."""
        return json.dumps([[one.row, one.error, one.message] for one in self.refused])


def write_slots(
    output: Output,
    part: TaskPart,
    held: Mapping[int, Entry],
    write: Callable[[int, pa.Table], Sequence[Refused]],
) -> tuple[dict[int, Entry], Written]:
    """Write the rows of delivery partitions that the ledger does not have.

    Args:
        output: Which one.
        part: The rows of a task.
        held: What the ledger has.
        write: Takes a delivery partition and its rows; returns those that were not taken.

    Returns:
        What the ledger does not say yet, and what was done.

    Raises:
        StateError: The ledger has another batch of that number.
    """
    slots, new = slots_of(part.rows), dict[int, Entry]()
    refused: list[Refused] = []
    for slot, places in slots.items():
        entry = held.get(slot)
        if entry is None or entry.batch < part.batch:
            found = tuple(write(slot, part.rows.take(pa.array(places, pa.int64()))))
            entry = new[slot] = Entry(
                batch=part.batch, mark=part.mark, rows=len(places), refused=found
            )
        elif entry.batch > part.batch:
            continue
        elif entry.mark != part.mark:
            raise other_records("table", str(output.settings["table"]), part.batch)
        refused += [replace(one, row=int(places[one.row])) for one in entry.refused]
    note = {_NOTE: {output.name: [[slot, len(places)] for slot, places in sorted(slots.items())]}}
    return new, Written(
        rows={output.name: sum(entry.rows - len(entry.refused) for entry in new.values())},
        notes=(note,),
        refused=tuple(sorted(refused, key=lambda one: one.row)),
    )


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """A table as the driver of a run sees it: its tasks commit, it checks."""

    output: Output
    capabilities: Capabilities
    """What the table promises."""
    held: Mapping[int, Entry]
    """What the ledger had when the run began."""

    def commit(self, batch: FinishedBatch) -> None:
        """Check that a batch that runs again has the rows that it had."""
        number = batch.number
        before = {slot: e.rows for slot, e in self.held.items() if e.batch == number}
        if not before or not batch.same_rows:
            return
        now: Counter[int] = Counter()
        for note in batch.notes:
            for slot, rows in note.get(_NOTE, {}).get(self.output.name, ()):
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


def taken_over(output: Output) -> TakenOver:
    """Return the error of a run that is no longer the newest one."""
    return TakenOver(
        f"another run has taken over table '{output.settings['table']}'",
        hint="a pipeline has one run at a time; stop this one",
    )
