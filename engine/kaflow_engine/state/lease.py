"""One run at a time per state directory."""

import fcntl
import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from kaflow_engine.errors import StateError


@contextmanager
def hold_lease(directory: Path) -> Generator[None]:
    """Hold the state directory until the end of the block, or of the process.

    Raises:
        StateError: Another process holds it; says which.
    """
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory / "lease", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"another run holds '{directory}': {_holder(handle)}",
                hint="stop it first; the lease ends with its process",
            ) from error
        about = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        os.ftruncate(handle, 0)
        os.pwrite(handle, about, 0)
        yield
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    with suppress(ValueError, KeyError, TypeError):
        about = json.loads(os.pread(handle, 4096, 0))
        return f"process {about['pid']} on {about['host']}"
    return "a process that has just started"
