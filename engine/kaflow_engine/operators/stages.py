"""The stages of a plan: map, keyed steps, and the last exchange."""

import pyarrow as pa

from kaflow_engine.flow.plan import Plan
from kaflow_engine.operators.join.keyed_join import run_step
from kaflow_engine.operators.outcomes.ledger import run_ledger
from kaflow_engine.operators.output.deliver import run_deliver
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.source.map_stage import run_map


def run_stage(plan: Plan, stage: int, batch: BatchContext, rows: pa.Table, task: Task) -> pa.Table:
    """Run one stage in one task.

    Args:
        plan: What runs.
        stage: 0 is the map stage; the last one is `plan.stage_count - 1`.
        batch: Which batch.
        rows: Schema RECORDS for stage 0, otherwise EXCHANGE.
        task: State, change log and sink.

    Returns:
        Schema EXCHANGE: rows for the stages named in `stage` and partitions named in `part`; of the
        last stage, reports only.
    """
    if stage == 0:
        found = run_map(plan, batch, rows, task)
    elif stage <= len(plan.steps):
        found = run_step(plan, stage, batch, rows, task)
    elif plan.ledger and stage == len(plan.steps) + 1:
        found = run_ledger(plan, batch, rows, task)
    else:
        found = rows
    if stage == plan.stage_count - 1:
        return run_deliver(plan, batch, found, task)
    return found


def run_stages(plan: Plan, batch: BatchContext, records: pa.Table, task: Task) -> pa.Table:
    """Run all stages in one task: a small batch, or the local executor."""
    rows = records
    for stage in range(plan.stage_count):
        rows = run_stage(plan, stage, batch, rows, task)
    return rows
