"""Exit codes of the `kaflow` command: which ones Airflow retries, fails or skips."""

from collections.abc import Mapping
from typing import Any, Literal

from kaflow_engine.errors import LimitReached, ModelError, StateError

Ending = Literal["success", "retry", "fail", "skip"]
"""What becomes of a task: `retry` fails it as long as it has retries left, `fail` at once."""

_WRONG_USAGE = 2
PERMANENT_FAILURES = frozenset(
    {_WRONG_USAGE, ModelError.exit_code, LimitReached.exit_code, StateError.exit_code}
)
"""Codes after which another try ends alike; all others may heal."""

DONE = ("caught up", "limit")
"""How a pipeline ends that has read what it was to read."""

VERDICT_COMMANDS = ("check", "plan", "test")
"""Commands that say by code 1 what they found; of others it is a failure like any other."""


def ending_of(code: int, command: str, chosen: Mapping[int, Ending]) -> Ending:
    """Return what becomes of a task whose command has ended.

    Args:
        code: The exit code; below 0 it is the signal that killed the process.
        command: The sub-command, such as `backfill`.
        chosen: What the author says of codes; it goes over everything else.
    """
    if code in chosen:
        return chosen[code]
    if code == 0:
        return "success"
    if code in PERMANENT_FAILURES or (code == 1 and command in VERDICT_COMMANDS):
        return "fail"
    return "retry"


def stopped_early(summary: Any) -> bool:
    """Tell whether a `run` or `backfill` that ended well was asked to, before it was done.

    Args:
        summary: What it printed with `--json`; None: it ended before anything ran.
    """
    return summary is None or any(
        pipeline["ending"] not in DONE for pipeline in summary["pipelines"]
    )


def summary_lines(summary: Any) -> list[str]:
    """Return a line for each pipeline of what `run` and `backfill` print with `--json`."""
    pipelines: list[dict[str, Any]] = [] if summary is None else summary["pipelines"]
    return [
        f"{each['name']}: {each['ending']} after {each['records']} records" for each in pipelines
    ]
