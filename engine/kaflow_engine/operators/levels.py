"""The levels of a flow: what one task runs between two exchanges."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

import pyarrow as pa

from kaflow_engine.flow.beginnings import Reading, inner_readings, readings_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import (
    last_level,
    levels,
    readers_of,
    sides_of,
    taker_of,
    throttled_readers,
)
from kaflow_engine.flow.operators import (
    Aggregate,
    Decode,
    Gathers,
    KeyedJoin,
    Ledger,
    MakesChanges,
    Project,
    TakesRows,
)
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.operators.aggregate.aggregate import run_aggregate
from kaflow_engine.operators.aggregate.enter import enter_aggregate
from kaflow_engine.operators.aggregate.enter_changes import enter_aggregate_changes
from kaflow_engine.operators.beginning.begin import begin
from kaflow_engine.operators.handover import Changes, HandOn, Leaving, Taken, by_all_or_none, of_all
from kaflow_engine.operators.join.enter import enter_join
from kaflow_engine.operators.join.enter_side import enter_events, enter_side
from kaflow_engine.operators.join.keyed_join import run_join
from kaflow_engine.operators.outcomes.ledger import run_ledger
from kaflow_engine.operators.output.changes import run_changes
from kaflow_engine.operators.output.deliver import run_deliver
from kaflow_engine.operators.output.project import run_project
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.runs.enter import enter_runs
from kaflow_engine.operators.runs.runs import run_runs
from kaflow_engine.operators.source.run_decode import run_decode
from kaflow_engine.operators.table.append import enter_append
from kaflow_engine.operators.table.enter import enter_table, enter_table_changes, enter_table_join
from kaflow_engine.operators.table.materialize import run_materialize
from kaflow_engine.operators.table.table_join import run_table_join
from kaflow_engine.operators.throttle.throttle import run_throttle
from kaflow_engine.operators.transform.enter import enter_transform


@dataclass(frozen=True, slots=True)
class _Running:
    """What operators hand rows on in."""

    flow: Flow
    batch: BatchContext
    task: Task


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
    at, running = levels(flow), _Running(flow, batch, task)
    found = EXCHANGE.empty_table() if level == 0 else rows
    begun = begin(flow, level, batch, task, partial(_read, running))
    found = pa.concat_tables([found, *begun]) if begun else found
    for operator in flow.operators:
        if at[operator.id] != level:
            continue
        match operator:
            case Decode(clock=0, source=source):
                made = run_decode(flow, source, batch, rows, task, partial(_take, running))
                found = pa.concat_tables([found, made])
            case Decode():
                pass  # the one of the first clock decodes the topic once
            case KeyedJoin():
                found = run_join(flow, operator, batch, found, task, _hand_on(running, operator))
            case Project() | Append() | Transform():
                pass  # the operator before it hands rows on within the task
            case Ledger():
                found = run_ledger(flow, operator, batch, found, task)
            case Aggregate():
                hand_on, changes = (
                    _hand_on(running, operator),
                    partial(_take_changes, running, operator),
                )
                found = run_aggregate(flow, operator, batch, found, task, hand_on, changes)
            case Materialize():
                changes = partial(_take_changes, running, operator)
                found = run_materialize(flow, operator, batch, found, task, changes)
            case TableJoin():
                changes = partial(_take_changes, running, operator)
                found = run_table_join(flow, operator, batch, found, task, changes)
            case Runs():
                found = run_runs(flow, operator, batch, found, task, _hand_on(running, operator))
            case Throttle():
                found = run_throttle(flow, operator, batch, found, task)
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


def _hand_on(running: _Running, operator: KeyedJoin | Gathers) -> HandOn:
    """Return what takes the rows that leave an operator: those that read them, and joins of which
    they are events."""
    readers, sides = readers_of(running.flow, operator.id), sides_of(running.flow, operator.id)

    def take(leaving: Leaving) -> Taken:
        found = [_taken_by(running, each, leaving) for each in readers]
        found += [enter_events(running.flow, join, side, leaving) for join, side in sides]
        return by_all_or_none(found)

    return take


def _take(running: _Running, readers: Sequence[TakesRows], leaving: Leaving) -> Taken:
    return by_all_or_none([_taken_by(running, each, leaving) for each in readers])


def _take_changes(running: _Running, table: MakesChanges, changes: Changes) -> Taken:
    """Hand changes to all that read the table.

    What fails for one reader still goes to others, unless the row before stays: then all of them
    keep that one.
    """
    flow = running.flow
    match changes.because:
        case "closed":
            return run_changes(flow, throttled_readers(flow, table.id), changes)
        case "forgotten":
            return _read(running, inner_readings(flow, table), changes)
        case "changed":
            pass
    taken = _taken_changes(running, table, changes)
    if changes.stays and taken.bad:
        return replace(_taken_changes(running, table, changes.without(taken.bad)), bad=taken.bad)
    return taken


def _taken_changes(running: _Running, table: MakesChanges, changes: Changes) -> Taken:
    return _read(running, tuple(readings_of(running.flow, table)), changes)


def _read(running: _Running, readings: Sequence[Reading], changes: Changes) -> Taken:
    """Hand changes of a table to some that read it; sinks take them together, and last."""
    flow = running.flow
    to_sinks: list[Project] = []
    found: list[Taken] = []
    for reading in readings:
        match reading:
            case Reading(reader=Materialize() as table):
                found.append(enter_table_changes(flow, table, changes))
            case Reading(reader=Aggregate() as aggregate, project=Project() as entry):
                found.append(enter_aggregate_changes(flow, entry, aggregate, changes))
            case Reading(reader=Append() as append, project=Project() as entry):
                found.append(enter_append(entry, append, changes, _hand_on(running, append)))
            case Reading(reader=TableJoin() as join, side=int() as side):
                found.append(enter_table_join(flow, join, side, changes))
            case Reading(reader=KeyedJoin() as lookup, side=int() as side):
                found.append(enter_side(flow, lookup, side, changes))
            case Reading(project=Project() as shown):
                to_sinks.append(shown)
            case _:
                raise AssertionError("changes go through a projection, or to a side of a join")
    if to_sinks:
        found.append(run_changes(flow, to_sinks, changes))
    return of_all(found)


def _taken_by(running: _Running, reader: TakesRows, leaving: Leaving) -> Taken:
    flow = running.flow
    match reader:
        case KeyedJoin():
            return enter_join(flow, reader, leaving)
        case Project():
            match taker_of(flow, reader):
                case Aggregate() as aggregate:
                    return enter_aggregate(flow, reader, aggregate, leaving)
                case Runs() as runs:
                    return enter_runs(flow, reader, runs, leaving)
                case Transform() as transform:
                    hand_on = _hand_on(running, transform)
                    return enter_transform(
                        reader, transform, running.batch, running.task, leaving, hand_on
                    )
                case Append():
                    raise AssertionError("append rows have no changes")
                case sink:
                    return run_project(flow, reader, sink, leaving)
        case Materialize():
            return enter_table(flow, reader, leaving)
        case _:
            assert_never(reader)
