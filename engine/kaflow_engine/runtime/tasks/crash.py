"""Crash points: places where a test may kill or pause the engine."""

import os
import signal
from pathlib import Path
from typing import Literal

CrashPoint = Literal[
    "before_batch",
    "batch_logged",
    "before_map",
    "mapped",
    "before_changes",
    "changes_written",
    "files_written",
    "before_slot",
    "slot_claimed",
    "before_transaction",
    "transaction_begun",
    "rows_produced",
    "marker_produced",
    "before_commit",
    "piece_committed",
    "committed",
    "next_cluster",
    "before_table",
    "table_taken",
    "before_commit_log",
    "commit_logged",
    "before_group",
    "group_committed",
    "before_snapshot",
    "snapshot_copied",
    "snapshot_taken",
    "before_replace",
    "replaced",
]
"""In the order in which a batch passes them: before and after every step of the protocol.

Those of files and tables only where rows go into a table; `next_cluster` where they go to several
clusters; the last two at the end of a backfill.
"""

VARIABLE = "KAFLOW_CRASH_AT"
"""`<point>:<batch>[:task|:pause]`, `*` being any batch, or `@<file>` with that in it.

It kills the whole run there; with `task` only the process that got there, and with `pause` that
process is stopped until it is sent SIGCONT. The file is removed by whoever obeys it.
"""


def crash_point(point: str, batch: int, driver: int) -> None:
    """Kill this process, and the driver unless told otherwise, if the environment asks for it.

    Args:
        point: Where the engine stands, a CrashPoint.
        batch: The batch that is being run.
        driver: Process id of the driver; its end ends Spark's JVM.
    """
    wanted = os.environ.get(VARIABLE, "")
    if not wanted:
        return
    file = Path(wanted[1:]) if wanted.startswith("@") else None
    place, number, how = (*_read(file, wanted).split(":"), "", "")[:3]
    if place != point or number not in ("*", str(batch)) or not _take(file):
        return
    if how == "pause":
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    if how != "task" and driver != os.getpid():
        os.kill(driver, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _read(file: Path | None, wanted: str) -> str:
    if file is None:
        return wanted
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""


def _take(file: Path | None) -> bool:
    try:
        if file is not None:
            file.unlink()
    except FileNotFoundError:  # another process was first
        return False
    return True
