"""Which batch begins with the rows of tables: the first one of the plan that has their readers."""

from kaflow_engine.flow.flow import Beginning, Flow
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.log.batch_log import FIRST, BatchLog


def beginnings(log: BatchLog, batch: int, plan: Flow, mark: str) -> frozenset[Beginning]:
    """Return what begins in a batch: what the plan of the batch before did not have.

    So it is the same for each try of the batch, and nothing begins twice.

    Args:
        log: Has the batch before, and its plan.
        batch: Its number.
        plan: With which it is run.
        mark: What the log calls that plan.
    """
    if batch == FIRST or not plan.begins:
        return frozenset()
    last = log.load_batch(batch - 1).plan
    if last == mark:
        return frozenset()
    return frozenset(plan.begins) - frozenset(plan_of(log.load_plan(last)).begins)
