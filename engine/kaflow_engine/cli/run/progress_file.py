"""Writes what a run does to a file, one JSON object a line, for whoever watches from outside."""

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from kaflow_engine.telemetry.progress import Progress


@contextmanager
def progress_file(path: Path | None) -> Generator[Callable[[Progress], None]]:
    """Give a function that appends each change to a file, with the time in epoch milliseconds.

    Without a path it does nothing.
    """
    if path is None:
        yield lambda progress: None
        return
    lock = Lock()  # each pipeline tells from a thread of its own
    with path.open("a", encoding="utf-8") as file:

        def write(progress: Progress) -> None:
            line = json.dumps({"time": time.time_ns() / 1e6, **asdict(progress)})
            with lock:
                file.write(line + "\n")
                file.flush()

        yield write
