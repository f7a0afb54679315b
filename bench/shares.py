"""What a batch's time goes into: the phases that the product reports, as steps that add up."""

from collections.abc import Mapping, Sequence

STEPS = (
    "input",
    "exchange",
    "state_read",
    "sql",
    "state_write",
    "produce",
    "commit",
    "outside_tasks",
)
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


def steps_of(phases: Mapping[str, float]) -> dict[str, float]:
    """Return the milliseconds of tasks by step.

    >>> steps_of({"task.read.0": 5.0, "task.run.0": 9.0, "task.deliver": 4.0,
    ...           "task.deliver.commit": 1.0, "execute": 30.0})["sql"]
    5.0
    """
    tasks = {k.removeprefix("task."): v for k, v in phases.items() if k.startswith("task.")}

    def spent(*names: str) -> float:
        return sum(tasks.get(name, 0.0) for name in names)

    reads = {name: ms for name, ms in tasks.items() if name.partition(".")[0] == "read"}
    runs = sum(ms for name, ms in tasks.items() if name.partition(".")[0] == "run")
    commit = spent("deliver.commit")
    found = {
        "input": spent("read", "read.0"),
        "exchange": sum(ms for name, ms in reads.items() if name not in ("read", "read.0")),
        "state_read": spent("open", "state"),
        "state_write": spent("changes", "close"),
        "produce": spent("deliver") - commit,
        "commit": commit,
    }
    found["sql"] = max(runs - spent("open", "state", "changes", "deliver"), 0.0)
    return found
