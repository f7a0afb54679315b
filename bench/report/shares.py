"""What a batch's time goes into: the phases that the product reports, as steps that add up."""

from collections.abc import Mapping, Sequence

from kaflow_engine.telemetry.steps import STEPS as TASK_STEPS
from kaflow_engine.telemetry.steps import steps_of

STEPS = (*TASK_STEPS, "outside_tasks")
"""`sql` is all computing in tasks, DuckDB's and Arrow's; `outside_tasks` is the rest of the cores'
time: the driver, Spark's own work between tasks, and cores that wait."""


def shares(
    batches: Sequence[Mapping[str, float]], wall: Sequence[float], cores: int
) -> dict[str, float]:
    """Return the share of each step in the time of all cores; they add up to 1.

    Args:
        batches: Phases of each batch, in ms; those of tasks (`task.…`) are sums over tasks.
        wall: Milliseconds of each batch, from the commit before it to its own.
        cores: How many tasks run at once.
    """
    total = sum(wall) * cores
    found: dict[str, float] = {step: 0.0 for step in STEPS}
    for phases in batches:
        for step, spent in steps_of(phases).items():
            found[step] += spent
    if total <= 0:
        return found
    tasks = sum(found.values())
    found["outside_tasks"] = max(total - tasks, 0.0)
    whole = max(total, tasks)
    return {step: round(spent / whole, 4) for step, spent in found.items()}
