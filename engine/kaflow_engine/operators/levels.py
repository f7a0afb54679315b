"""The levels of a flow: what one task runs between two exchanges."""

from collections.abc import Sequence
from functools import partial
from typing import assert_never

import pyarrow as pa

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import last_level, levels, readers_of
from kaflow_engine.flow.operators import Decode, KeyedJoin, Ledger, Project, TakesRows
from kaflow_engine.operators.handover import HandOn, Leaving, Taken, by_all_or_none
from kaflow_engine.operators.join.enter import enter_join
from kaflow_engine.operators.join.keyed_join import run_join
from kaflow_engine.operators.outcomes.ledger import run_ledger
from kaflow_engine.operators.output.deliver import run_deliver
from kaflow_engine.operators.output.project import run_project
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.source.run_decode import run_decode


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


def _hand_on(flow: Flow, join: KeyedJoin) -> HandOn:
    """Return what takes the rows that leave a join."""
    return partial(_take, flow, readers_of(flow, join.id))


def _take(flow: Flow, readers: Sequence[TakesRows], leaving: Leaving) -> Taken:
    return by_all_or_none([_taken_by(flow, each, leaving) for each in readers])


def _taken_by(flow: Flow, reader: TakesRows, leaving: Leaving) -> Taken:
    match reader:
        case KeyedJoin():
            return enter_join(flow, reader, leaving)
        case Project():
            return run_project(flow, reader, leaving)
        case _:
            assert_never(reader)
