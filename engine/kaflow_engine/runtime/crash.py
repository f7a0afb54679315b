"""Points at which a test may kill the engine."""

import os
import signal
from typing import Literal

CrashPoint = Literal[
    "batch_logged", "changes_written", "before_commit", "committed", "commit_logged"
]
"""In the order in which a batch passes them."""

VARIABLE = "KAFLOW_CRASH_AT"
"""`<point>:<batch>` kills the whole run there, `<point>:<batch>:task` only the worker process."""


def crash_point(point: str, batch: int, driver: int) -> None:
    """Kill this process, and the driver unless told otherwise, if the environment asks for it.

    Args:
        point: Where the engine stands, a CrashPoint.
        batch: The batch that is being run.
        driver: Process id of the driver; its end ends Spark's JVM.
    """
    wanted = os.environ.get(VARIABLE, "")
    if not wanted.startswith(f"{point}:{batch}"):
        return
    place, _, victim = wanted.removeprefix(f"{point}:").partition(":")
    if place != str(batch):
        return
    if victim != "task" and driver != os.getpid():
        os.kill(driver, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
