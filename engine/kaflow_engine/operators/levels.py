"""The levels of a flow: what one task runs between two exchanges."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never

import pyarrow as pa

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import (
    last_level,
    levels,
    readers_of,
    sides_of,
    table_sides_of,
    taker_of,
)
from kaflow_engine.flow.operators import (
    Aggregate,
    Decode,
    KeyedJoin,
    Ledger,
    MakesChanges,
    Project,
    TakesRows,
)
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.operators.aggregate.aggregate import run_aggregate
from kaflow_engine.operators.aggregate.enter import enter_aggregate
from kaflow_engine.operators.aggregate.enter_changes import enter_aggregate_changes
from kaflow_engine.operators.handover import Changes, HandOn, Leaving, Taken, by_all_or_none, of_all
from kaflow_engine.operators.join.enter import enter_join
from kaflow_engine.operators.join.enter_side import enter_side
from kaflow_engine.operators.join.keyed_join import run_join
from kaflow_engine.operators.outcomes.ledger import run_ledger
from kaflow_engine.operators.output.changes import run_changes
from kaflow_engine.operators.output.deliver import run_deliver
from kaflow_engine.operators.output.project import run_project
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.source.run_decode import run_decode
from kaflow_engine.operators.table.enter import enter_table, enter_table_changes, enter_table_join
from kaflow_engine.operators.table.materialize import run_materialize
from kaflow_engine.operators.table.table_join import run_table_join


def run_level(flow: Flow, level: int, batch: BatchContext, rows: pa.Table, task: Task) -> pa.Table:
    """Run the operators of one level in one task.

    Args:
        flow: What runs.
        level: From 0, which reads records, to `last_level`, which delivers.
        batch: Which batch.
        rows: Schema RECORDS at level 0, otherwise EXCHANGE; rows for later levels pass untouched.
        task: State, change log and sink.

    Returns:
        Schema EXCHANGE: rows for the operators and sinks named in `target` and the partitions named
        in `part`; of the last level, reports only.
    """
    at = levels(flow)
    found = EXCHANGE.empty_table() if level == 0 else rows
    for operator in flow.operators:
        if at[operator.id] != level:
            continue
        match operator:
            case Decode():
                made = run_decode(flow, operator, batch, rows, task, partial(_take, flow))
                found = pa.concat_tables([found, made])
            case KeyedJoin():
                found = run_join(flow, operator, batch, found, task, _hand_on(flow, operator))
            case Project():
                pass  # the operator before it hands rows on within the task
            case Ledger():
                found = run_ledger(flow, operator, batch, found, task)
            case Aggregate():
                hand_on, changes = _hand_on(flow, operator), partial(_take_changes, flow, operator)
                found = run_aggregate(flow, operator, batch, found, task, hand_on, changes)
            case Materialize():
                changes = partial(_take_changes, flow, operator)
                found = run_materialize(flow, operator, batch, found, task, changes)
            case TableJoin():
                changes = partial(_take_changes, flow, operator)
                found = run_table_join(flow, operator, batch, found, task, changes)
            case _:
                assert_never(operator)
    if level == last_level(flow):
        return run_deliver(flow, batch, found, task)
    return found


def run_levels(flow: Flow, batch: BatchContext, records: pa.Table, task: Task) -> pa.Table:
    """Run all levels in one task: a small batch, or the local executor."""
    rows = records
    for level in range(last_level(flow) + 1):
        rows = run_level(flow, level, batch, rows, task)
    return rows


def _hand_on(flow: Flow, operator: KeyedJoin | Aggregate) -> HandOn:
    """Return what takes the rows that leave an operator."""
    return partial(_take, flow, readers_of(flow, operator.id))


def _take(flow: Flow, readers: Sequence[TakesRows], leaving: Leaving) -> Taken:
    return by_all_or_none([_taken_by(flow, each, leaving) for each in readers])


def _take_changes(flow: Flow, table: MakesChanges, changes: Changes) -> Taken:
    """Hand changes to all that read the table.

    What fails for one reader still goes to others, unless the row before stays: then all of them
    keep that one.
    """
    taken = _taken_changes(flow, table, changes)
    if changes.stays and taken.bad:
        return replace(_taken_changes(flow, table, changes.without(taken.bad)), bad=taken.bad)
    return taken


def _taken_changes(flow: Flow, table: MakesChanges, changes: Changes) -> Taken:
    to_sinks: list[Project] = []
    found: list[Taken] = []
    for reader in readers_of(flow, table.id):
        match reader:
            case Materialize():
                found.append(enter_table_changes(flow, reader, changes))
            case Project():
                match taker_of(flow, reader):
                    case Aggregate() as aggregate:
                        found.append(enter_aggregate_changes(flow, reader, aggregate, changes))
                    case _:
                        to_sinks.append(reader)
            case KeyedJoin():
                raise AssertionError("the rows of a join are append rows")
            case _:
                assert_never(reader)
    for join, side in table_sides_of(flow, table.id):
        found.append(enter_table_join(flow, join, side, changes))
    for lookup, side in sides_of(flow, table.id):
        found.append(enter_side(flow, lookup, side, changes))
    if to_sinks:
        found.append(run_changes(flow, to_sinks, changes))
    return of_all(found)


def _taken_by(flow: Flow, reader: TakesRows, leaving: Leaving) -> Taken:
    match reader:
        case KeyedJoin():
            return enter_join(flow, reader, leaving)
        case Project():
            match taker_of(flow, reader):
                case Aggregate() as aggregate:
                    return enter_aggregate(flow, reader, aggregate, leaving)
                case sink:
                    return run_project(flow, reader, sink, leaving)
        case Materialize():
            return enter_table(flow, reader, leaving)
        case _:
            assert_never(reader)
