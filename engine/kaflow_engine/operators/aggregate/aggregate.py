"""One aggregate in one task: rows are taken into groups, and changes of groups leave."""

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import entries_of, target_of
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.aggregate.closing.close import close
from kaflow_engine.operators.aggregate.closing.late import late_rows
from kaflow_engine.operators.aggregate.groups import Groups
from kaflow_engine.operators.aggregate.leave import late_letters, send_changes
from kaflow_engine.operators.aggregate.taking.first import send_first, take_first
from kaflow_engine.operators.aggregate.taking.sessions import take_into_sessions
from kaflow_engine.operators.aggregate.taking.take import take_into_fixed
from kaflow_engine.operators.aggregate.taking.take_changes import take_changes
from kaflow_engine.operators.aggregate.workspace import Work, no_rows
from kaflow_engine.operators.handover import HandChanges, HandOn
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.reports import due_report, report_rows
from kaflow_engine.operators.rows.row_order import in_order
from kaflow_engine.operators.rows.schemas import OF_RECORDS
from kaflow_engine.operators.rows.task import BatchContext, Task


def run_aggregate(
    flow: Flow,
    aggregate: Aggregate,
    batch: BatchContext,
    rows: pa.Table,
    task: Task,
    hand_on: HandOn,
    hand_changes: HandChanges,
) -> pa.Table:
    """Run an aggregate over the rows of one task.

    What other operators send because of the time comes first, then what is over here, then what
    records have made.

    Args:
        flow: What runs.
        aggregate: Which operator of it.
        batch: Which batch.
        rows: Schema EXCHANGE; rows for others pass through untouched.
        task: The state before the batch; takes the changes.
        hand_on: Takes append rows: windows that are closed, or the first of equal rows.
        hand_changes: Takes changes, where the result is a table.

    Returns:
        Schema EXCHANGE.
    """
    mine = pc.equal(rows["target"], target_of(flow, aggregate))
    branches = [target_of(flow, entry) for entry in entries_of(flow, aggregate)]
    here = in_order(keep(rows, mine), branches)
    found = [rows.filter(pc.invert(mine))]
    groups = Groups(aggregate, StepState(task, aggregate.state, flow.partitions))
    work = Work(flow=flow, aggregate=aggregate, batch=batch, groups=groups)
    timed = pc.less(here["t_phase"], OF_RECORDS)
    _take(work, keep(here, timed))
    found += close(work, late_rows(work, keep(here, pc.invert(timed))), hand_on, hand_changes)
    late = _take(work, keep(here, pc.invert(timed)))
    if late.num_rows and aggregate.on_late == "dead_letter":
        found.append(late_letters(work, late))
    if aggregate.leaves == "first":
        found += send_first(work, hand_on)
    else:
        found += send_changes(work, hand_changes)
    due = groups.write()
    report = {
        "counters": {**work.counters, "late_rows": late.num_rows},
        "due": due_report(work.chain.number, None if due is None else work.due_in_chain(due)),
    }
    found.append(report_rows([report]))
    return pa.concat_tables(found)


def _take(work: Work, rows: pa.Table) -> pa.Table:
    """Take rows into groups; returns those that are late."""
    if not rows.num_rows:
        return rows
    if work.aggregate.leaves == "first":
        take_first(work, rows)
        return no_rows()
    if work.aggregate.retracts:
        take_changes(work, rows)
        return no_rows()
    if isinstance(work.aggregate.window, SessionWindow):
        return take_into_sessions(work, rows)
    return take_into_fixed(work, rows)
