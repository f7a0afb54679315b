"""What becomes of the files that tasks wrote for a table: a commit a batch, or one for them all."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from kaflow_engine.connectors.delta.data_files import TableFile
from kaflow_engine.connectors.delta.files import Replaced
from kaflow_engine.connectors.delta.table import DeltaSink, held_batches, require_fit
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.flow.graph import driving_source, output_table
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.flow.sinks import TableParams
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.rows.table_rows import (
    SOURCE,
    partition_column,
    partitions_between,
    typed_rows,
)
from kaflow_engine.runtime.tasks.crash import crash_point
from kaflow_engine.state.log.batch_log import BatchRecord, StateRecord
from kaflow_engine.state.log.mark import batch_mark
from kaflow_engine.state.storage.store import Store

_FILES = "files"
_PREFIX = "kaflow-"


class TableSink(Protocol):
    """Takes what a batch wrote, before the batch is committed; again when it is replayed."""

    def take(self, batch: BatchRecord, report: BatchReport, same_rows: bool = True) -> None:
        """Take the files that the tasks of a batch report.

        Args:
            batch: As it is logged.
            report: Of its tasks.
            same_rows: Whether a batch that runs again must have the rows it had.
        """
        ...

    def holds(self, batch: int) -> bool:
        """Tell whether files of a batch were taken."""
        ...


class StreamTable:
    """Adds each batch to the table in a commit of its own."""

    def __init__(self, table: TableParams, state: StateRecord) -> None:
        self._sink = _open(table, state)

    def take(self, batch: BatchRecord, report: BatchReport, same_rows: bool = True) -> None:
        """Add the files of a batch, unless the table has that very batch already."""
        self._sink.add(batch.number, files_of(report), batch_mark(batch), same_rows)

    def holds(self, batch: int) -> bool:
        """Tell whether the table has a batch."""
        return self._sink.committed() >= batch


class BackfillTable:
    """Keeps the files of all batches until they take the place of what the table has of the range.

    That is the rows of the range that were made of records which the backfill has read. All others
    stay: those of records that the stream had not read when the backfill began, that lie further
    from the range than `backfill.slack`, or that their topic does not hold any more.
    """

    def __init__(
        self,
        plan: Flow,
        table: TableParams,
        wanted: Backfill,
        state: StateRecord,
        store: Store,
        require_newest: Callable[[], None],
    ) -> None:
        """Look at what will be replaced, so that nothing is refused only at the end.

        Raises:
            StateError: The table has rows that do not name the record they were made of.
        """
        self._table, self._store = table, store
        self._require_newest = require_newest
        self._replaced = replaced_by(plan, table, wanted, state)
        self._sink = _open(table, state)
        self._sink.check_known(self._replaced)

    def take(self, batch: BatchRecord, report: BatchReport, same_rows: bool = True) -> None:
        """Note the files of a batch."""
        files = files_of(report)
        if files:
            rows = [astuple(file) for file in files]
            self._store.put(f"{_FILES}/{batch.number}.json", json.dumps(rows).encode())

    def holds(self, batch: int) -> bool:
        """Tell whether files of a batch are noted."""
        return self._store.exists(f"{_FILES}/{batch}.json")

    def finish(self) -> None:
        """Let what all batches wrote take its place, in one commit.

        Raises:
            StateError: Files are gone, or rows do not name the record they were made of.
        """
        if self._sink.committed():  # and its files may be others by now
            return
        files = [
            TableFile(*row)
            for name in self._store.list(f"{_FILES}/")
            for row in json.loads(self._store.get(name))
        ]
        check_there(self._table, files)
        self._require_newest()
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


def replaced_by(plan: Flow, table: TableParams, wanted: Backfill, state: StateRecord) -> Replaced:
    """Return the rows that a backfill replaces."""
    topic = driving_source(plan).name
    goal = state.goal.get(topic, {})
    return Replaced(
        partitions=frozenset(partitions_between(wanted.start, wanted.end, table.partition)),
        source=SOURCE,
        read={p: (first, goal[p]) for p, first in state.start[topic].items() if p in goal},
        unknown=wanted.force,
    )


def table_sink(
    plan: Flow, state: StateRecord, store: Store, require_newest: Callable[[], None]
) -> TableSink | None:
    """Return what takes the files of a plan; None where rows go to a topic.

    Args:
        plan: What is to run.
        state: Whose batches they are.
        store: Where a backfill keeps notes of its files.
        require_newest: Raises where another run has begun.

    Raises:
        SinkError: The table cannot be written.
        StateError: A backfill cannot replace what the table has.
    """
    table = output_table(plan)
    if table is None:
        return None
    if plan.backfill is None:
        return StreamTable(table, state)
    return BackfillTable(plan, table, plan.backfill, state, store, require_newest)


def look_at_table(plan: Flow) -> None:
    """Look whether the table of a plan, if it has one, can be written; nothing is changed.

    Raises:
        SinkError: It has other columns or partitions, or cannot be read.
    """
    table = output_table(plan)
    if table is not None:
        require_fit(Path(table.path), *_form(table))


def table_holdings(plan: Flow, state: StateRecord) -> list[Holding]:
    """Return what the table of a plan holds, from whatever state; nothing is changed by looking.

    Raises:
        SinkError: The table cannot be read.
    """
    table = output_table(plan)
    if table is None or plan.backfill is not None:
        return []
    held = held_batches(Path(table.path), writer_of(state))
    return [_holding(writer, batch, table.name) for writer, batch in held.items()]


def hand_over(plan: Flow, state: StateRecord) -> None:
    """Make the table of a plan, if it has one, that of a state which replaces another one.

    Raises:
        SinkError: The table cannot be written.
    """
    table = output_table(plan)
    if table is not None:
        _open(table, state).own()


def writer_of(state: StateRecord) -> str:
    """Return how a table knows the writer of batches."""
    return f"{_PREFIX}{state.state_id}-{state.generation}"


def _holding(writer: str, batch: int, table: str) -> Holding:
    state, _, generation = writer.removeprefix(_PREFIX).rpartition("-")
    return Holding(state=state, generation=int(generation), batch=batch, table=table)


def files_of(report: BatchReport) -> list[TableFile]:
    """Return the files that tasks wrote."""
    notes: list[Any] = [row for note in report.notes for row in note.get("files", ())]
    return [TableFile(*row) for row in notes]


def _form(table: TableParams) -> tuple[pa.Schema, str]:
    """Return the columns of a table, and the one by which it is partitioned."""
    schema = typed_rows(table, OUTPUT.empty_table()).schema
    return schema, partition_column(table.partition)


def _open(table: TableParams, state: StateRecord) -> DeltaSink:
    schema, column = _form(table)
    return DeltaSink(Path(table.path), schema, column, writer_of(state))
