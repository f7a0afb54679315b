"""What becomes of the files that tasks wrote for a table: a commit a batch, or one for them all."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyarrow is untyped

import json
import os
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Protocol

from kaflow_engine.connectors.delta import DeltaSink
from kaflow_engine.connectors.delta_files import Replaced
from kaflow_engine.connectors.table_files import TableFile
from kaflow_engine.errors import StateError
from kaflow_engine.operators.params import Backfill, Plan, TableParams
from kaflow_engine.operators.reports import BatchReport
from kaflow_engine.operators.schemas import OUTPUT
from kaflow_engine.operators.table_rows import (
    SOURCE,
    partition_column,
    partitions_between,
    typed_rows,
)
from kaflow_engine.runtime.crash import crash_point
from kaflow_engine.state.log import StateRecord
from kaflow_engine.state.store import Store

_FILES = "files"


class TableSink(Protocol):
    """Takes what a batch wrote, before the batch is committed; again when it is replayed."""

    def take(self, batch: int, report: BatchReport) -> None:
        """Take the files that the tasks of a batch report."""
        ...


class StreamTable:
    """Adds each batch to the table in a commit of its own."""

    def __init__(self, table: TableParams, state: StateRecord) -> None:
        self._sink = _open(table, state)
        other = self._sink.other_writer()
        if other is not None and not other.startswith(f"kaflow-{state.state_id}-"):
            raise StateError(
                f"table '{table.name}' has rows of state '{other}', and the state at hand is "
                f"'{writer_of(state)}', which has written none",
                hint="bring that state back (its directory, or its snapshots), or write to another "
                "table, which gets all rows anew",
            )

    def take(self, batch: int, report: BatchReport) -> None:
        """Add the files of a batch, unless the table has it already."""
        files = files_of(report)
        if files:
            self._sink.add(batch, files)


class BackfillTable:
    """Keeps the files of all batches until they take the place of what the table has of the range.

    That is the rows of the range that were made of records which the backfill has read. All others
    stay: those of records that the stream had not read when the backfill began, that lie further
    from the range than `backfill.slack`, or that their topic does not hold any more.
    """

    def __init__(
        self, plan: Plan, table: TableParams, wanted: Backfill, state: StateRecord, store: Store
    ) -> None:
        """Look at what will be replaced, so that nothing is refused only at the end.

        Raises:
            StateError: The table has rows that do not name the record they were made of.
        """
        self._table, self._store = table, store
        self._replaced = replaced_by(plan, table, wanted, state)
        self._sink = _open(table, state)
        self._sink.check_known(self._replaced)

    def take(self, batch: int, report: BatchReport) -> None:
        """Note the files of a batch."""
        files = files_of(report)
        if files:
            rows = [astuple(file) for file in files]
            self._store.put(f"{_FILES}/{batch}.json", json.dumps(rows).encode())

    def finish(self) -> None:
        """Let what all batches wrote take its place, in one commit.

        Raises:
            StateError: Files are gone, or rows do not name the record they were made of.
        """
        files = [
            TableFile(*row)
            for name in self._store.list(f"{_FILES}/")
            for row in json.loads(self._store.get(name))
        ]
        check_there(self._table, files)
        crash_point("before_replace", 0, os.getpid())  # of all batches, so of none
        self._sink.replace(self._replaced, files)
        crash_point("replaced", 0, os.getpid())


def check_there(table: TableParams, files: Sequence[TableFile]) -> None:
    """Check that files which no commit names yet are what tasks wrote.

    Raises:
        StateError: One is gone, or has another size.
    """
    for file in files:
        path = Path(table.path) / file.path
        size = path.stat().st_size if path.exists() else None
        if size != file.size:
            what = "is gone" if size is None else f"has {size} bytes instead of {file.size}"
            raise StateError(
                f"a file that the backfill wrote for table '{table.name}' {what}: {file.path}",
                hint="add --restart to begin the backfill again; "
                "vacuum tables with a retention longer than the longest backfill",
            )


def replaced_by(plan: Plan, table: TableParams, wanted: Backfill, state: StateRecord) -> Replaced:
    """Return the rows that a backfill replaces."""
    topic = plan.topics[plan.driving.topic].name
    goal = state.goal.get(topic, {})
    return Replaced(
        partitions=frozenset(partitions_between(wanted.start, wanted.end, table.partition)),
        source=SOURCE,
        read={p: (first, goal[p]) for p, first in state.start[topic].items() if p in goal},
        unknown=wanted.force,
    )


def table_sink(plan: Plan, state: StateRecord, store: Store) -> TableSink | None:
    """Return what takes the files of a plan; None where rows go to a topic.

    Raises:
        SinkError: The table cannot be written.
        StateError: A backfill cannot replace what the table has.
    """
    table = plan.finish.table
    if table is None:
        return None
    if plan.backfill is None:
        return StreamTable(table, state)
    return BackfillTable(plan, table, plan.backfill, state, store)


def writer_of(state: StateRecord) -> str:
    """Return how a table knows the writer of batches."""
    return f"kaflow-{state.state_id}-{state.generation}"


def files_of(report: BatchReport) -> list[TableFile]:
    """Return the files that tasks wrote."""
    notes: list[Any] = [row for note in report.notes for row in note.get("files", ())]
    return [TableFile(*row) for row in notes]


def _open(table: TableParams, state: StateRecord) -> DeltaSink:
    schema = typed_rows(table, OUTPUT.empty_table()).schema
    column = partition_column(table.partition)
    return DeltaSink(Path(table.path), schema, column, writer_of(state))
