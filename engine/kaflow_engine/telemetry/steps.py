"""Task time by step: the phases that tasks report, as steps that add up."""

from collections.abc import Mapping

STEPS = ("input", "exchange", "state_read", "sql", "state_write", "produce", "commit")
"""`sql` is all computing in tasks, DuckDB's and Arrow's."""


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
    return {step: found[step] for step in STEPS}
