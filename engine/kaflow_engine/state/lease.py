"""One run at a time per state directory."""

import fcntl
import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from kaflow_engine.errors import DrainIncomplete, StateError
from kaflow_engine.state.private import close_to_others, make_private


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a state directory; None for a moment, while it writes down who it is."""

    pid: int | None = None
    host: str | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return "a process that has just started"
        return f"process {self.pid} on {self.host}"


@contextmanager
def hold_lease(directory: Path) -> Generator[None]:
    """Hold the state directory until the end of the block, or of the process.

    Of the process where the block ends in DrainIncomplete: its batch may still run.

    Raises:
        StateError: Another process holds it; says which. Or it cannot be written.
    """
    require_writable(directory)
    close_to_others(directory)
    handle = os.open(directory / "lease", os.O_RDWR | os.O_CREAT, 0o600)
    kept = False
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"another run holds '{directory}': {_written(handle)}",
                hint="stop it first; the lease ends with its process",
            ) from error
        about = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        os.ftruncate(handle, 0)
        os.pwrite(handle, about, 0)
        yield
    except DrainIncomplete:
        kept = True
        raise
    finally:
        if not kept:
            os.close(handle)


def require_writable(directory: Path) -> None:
    """Create a directory unless it is there, and make sure that files can be written in it.

    Raises:
        StateError: They cannot.
    """
    try:
        make_private(directory)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        a_file = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "a file is in the way" if a_file else (error.strerror or "refused").lower()
        raise StateError(
            f"the state directory '{directory}' cannot be written: {reason}",
            hint="set state.rocksdb.path to a folder that this user may write, on a disk with room",
        ) from error


def find_holder(directory: Path) -> Holder | None:
    """Return who holds the state directory; None if nobody does."""
    try:
        handle = os.open(directory / "lease", os.O_RDONLY)
    except OSError:
        return None
    try:
        # Shared, so that two who look do not see each other; it is given back at once.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written(handle)
    finally:
        os.close(handle)
    return None


def _written(handle: int) -> Holder:
    with suppress(ValueError, KeyError, TypeError):
        about = json.loads(os.pread(handle, 4096, 0))
        return Holder(int(about["pid"]), str(about["host"]))
    return Holder()
