"""The rows of tables on their way to readers that begin: as inserts, before all other rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.beginnings import Reading, readings_of, renamed, tables_of, twins
from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import levels
from kaflow_engine.flow.operators import Aggregate, MakesChanges
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.formats.pick import keep
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.aggregate.calculate import result_columns
from kaflow_engine.operators.aggregate.called import group_called
from kaflow_engine.operators.beginning.all_rows import TableRows, all_rows
from kaflow_engine.operators.handover import Changes, Taken, placed
from kaflow_engine.operators.output.before_after import before_after
from kaflow_engine.operators.output.row_letters import change_letters
from kaflow_engine.operators.row_errors.quarantine import BadRow, bad_records, guarded
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.schemas import BEGINS, NO_RECORD, ORIGIN, TRIGGER
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.table.enter import enter_table_changes
from kaflow_engine.operators.table.joined_rows import called as joined_called
from kaflow_engine.operators.table.materialize import row_called
from kaflow_engine.state.binary_columns import ordered_words

HandRows = Callable[[Sequence[Reading], Changes], Taken]
"""Hands changes of a table to some of those that read it."""


def begin(
    flow: Flow, level: int, batch: BatchContext, task: Task, hand_rows: HandRows
) -> list[pa.Table]:
    """Return what readers that begin in a batch take: all rows of the tables at one level.

    All of these rows have one cause, which stands before every other one of the batch, so that what
    is behind makes one change of each of its own rows. They stand in the order of their event
    times.

    Args:
        flow: What runs.
        level: Whose tables are looked at.
        batch: Says what begins.
        task: The state before the batch.
        hand_rows: Takes the rows.

    Returns:
        Rows and dead letters, schema EXCHANGE.
    """
    found: list[pa.Table] = []
    at = levels(flow) if batch.begins else {}
    for table in tables_of(flow) if batch.begins else ():
        if at[table.id] != level:
            continue
        reading = [each for each in readings_of(flow, table) if each.beginning in batch.begins]
        if reading:
            for rows in all_rows(flow, table, task):
                found += _handed(flow, table, batch, rows, partial(hand_rows, reading))
    for each in twins(flow) if batch.begins else ():
        if each.beginning in batch.begins and at[each.reader.id] == level:
            found += _copied(flow, each, batch, task)
    return found


def _copied(flow: Flow, reading: Reading, batch: BatchContext, task: Task) -> Iterator[pa.Table]:
    """Yield the rows of a table for its twin, which keeps them under the same keys, and so in the
    same partition."""
    table, reader = reading.table, reading.reader
    assert isinstance(table, Materialize)
    assert isinstance(reader, Materialize)
    assert isinstance(reader.rows, Driving)
    columns, where = renamed(table, reader), reader.rows.filter
    for rows in all_rows(flow, table, task):
        every = changes = inserts(flow, batch, rows, columns)
        failed: Sequence[BadRow] = ()
        if where is not None:
            sides = before_after(changes)
            passed, failed = guarded(f"SELECT rn FROM ({sides.typed}) WHERE {where}", sides.rows)
            kept = keep(changes.rows, pc.is_in(changes.rows["rn"], passed["rn"].combine_chunks()))
            changes = replace(changes, rows=kept)
        if changes.rows.num_rows:
            yield enter_table_changes(flow, reader, changes).rows
        if failed:
            yield change_letters(
                flow,
                chain_of(flow, reader),
                every,
                bad_records(failed),
                partial(row_called, reader),
            )


def _handed(
    flow: Flow,
    table: MakesChanges,
    batch: BatchContext,
    rows: TableRows,
    hand_rows: Callable[[Changes], Taken],
) -> Iterator[pa.Table]:
    if not rows.kept:
        return
    changes = inserts(flow, batch, rows, columns_of_table(table))
    taken = hand_rows(changes)
    yield taken.rows
    if taken.bad:
        yield change_letters(flow, chain_of(flow, table), changes, taken.bad, _called(table))


def inserts(flow: Flow, batch: BatchContext, rows: TableRows, columns: Sequence[Column]) -> Changes:
    """Return rows of a table as changes before which there was nothing."""
    count = len(rows.kept)
    numbers = pa.array(np.arange(count))
    ts = pa.array(rows.ts, pa.int64())
    group = pa.array(rows.group, pa.binary())
    constants = {
        **dict.fromkeys((*TRIGGER, *ORIGIN), 0),
        "t_phase": BEGINS,
        "d_batch": batch.batch,
        "d_part": NO_RECORD,
        "d_off": NO_RECORD,
    }
    no = pa.repeat(False, count)
    known = pa.table(
        {
            "rn": numbers,
            **{name: pa.repeat(pa.scalar(v, pa.int64()), count) for name, v in constants.items()},
            "d_time": ts,
            "members": ordered_words(group),
            "ts": ts,
            "part": pa.array(first_parts(pa.array(rows.kept, pa.binary()), flow.partitions)),
            "counted": no,
            "forced": no,
        }
    )
    made = {
        "rn": numbers,
        "group": group,
        "old": pa.nulls(count, pa.string()),
        "new": pa.array(rows.packed, pa.string()),
    }
    return Changes(
        rows=pa.table(made),
        columns=columns,
        placed=lambda found: placed(found, known),
        stays=False,
    )


def columns_of_table(table: MakesChanges) -> Sequence[Column]:
    """Return the columns of the rows of a table, named `alias.column`."""
    match table:
        case Materialize(columns=columns):
            return columns
        case TableJoin(left=left, right=right):
            return (*left.columns, *right.columns)
        case Aggregate():
            return result_columns(table)


def _called(table: MakesChanges) -> Callable[[bytes], str]:
    match table:
        case Materialize():
            return partial(row_called, table)
        case TableJoin():
            return partial(joined_called, table)
        case Aggregate():
            return partial(group_called, table)
