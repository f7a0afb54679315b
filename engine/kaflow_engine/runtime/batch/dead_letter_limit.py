"""The dead letter limit: how many a run may send before it stops."""

from kaflow_engine.errors import LimitReached
from kaflow_engine.flow.flow import Flow

ENOUGH = 100
"""Records that a run must have read before their share of dead letters means something."""


def check_budget(plan: Flow, read: int, dead: int) -> None:
    """Stop a pipeline whose dead letters exceed its budget.

    Args:
        plan: Holds the budget: `max_count`, and `max_rate` as a share of the records read.
        read: Records of all topics that this run has read.
        dead: Dead letters that it has sent.

    Raises:
        LimitReached: after the batch that went beyond the budget was committed.
    """
    topic = plan.dead_letter_topic
    where = f"topic '{topic}'" if topic else f"`kaflow dead-letters list {plan.name}`"
    cure = f"look into {where}, then start again or raise the budget"
    if plan.max_dead_letters is not None and dead > plan.max_dead_letters:
        raise LimitReached(
            f"pipeline '{plan.name}' has sent {dead} dead letters, more than "
            f"dead_letters.max_count {plan.max_dead_letters}",
            hint=cure,
        )
    if plan.max_dead_rate is not None and read >= ENOUGH and dead > plan.max_dead_rate * read:
        raise LimitReached(
            f"pipeline '{plan.name}' has sent {dead} dead letters for {read} records, more than "
            f"dead_letters.max_rate {plan.max_dead_rate:g}",
            hint=cure,
        )
