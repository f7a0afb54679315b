"""The lease of a state directory: one run at a time."""

import fcntl
import json
import os
import socket
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from types import TracebackType

from kaflow_engine.errors import DrainIncomplete, StateError, StateHeld
from kaflow_engine.state.storage.private import close_to_others, make_private

LEASE = "lease"
"""The file in a state directory that whoever holds it has locked."""


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
        StateHeld: Another process holds it; says which.
        StateError: It cannot be written.
    """
    require_writable(directory)
    handle = _take(directory)
    kept = False
    try:
        yield
    except DrainIncomplete:
        kept = True
        raise
    finally:
        if not kept:
            os.close(handle)


class Leases:
    """The state directories of several pipelines: this process holds all of them, or none.

    Each is given back when its pipeline has ended, and what is left with the block, or with the
    process.
    """

    def __init__(self, root: Path, pipelines: Iterable[str]) -> None:
        self._root = root
        self._pipelines = sorted(pipelines)
        self._handles: dict[str, int] = {}
        self._lock = Lock()
        for pipeline in self._pipelines:
            require_writable(root / pipeline)

    def take(self) -> "Leases":
        """Take all of them.

        No one waits with a lease in hand, so two processes never wait for each other.

        Raises:
            StateHeld: Another process holds one; says which.
        """
        try:
            for pipeline in self._pipelines:
                self._handles[pipeline] = _take(self._root / pipeline)
        except StateError:
            self.close()
            raise
        return self

    def release(self, pipeline: str) -> None:
        """Give back the one of a pipeline; its threads may all do so at once."""
        with self._lock:
            handle = self._handles.pop(pipeline, None)
        if handle is not None:
            os.close(handle)

    def close(self) -> None:
        """Give back all that are left."""
        for pipeline in self._pipelines:
            self.release(pipeline)

    def __enter__(self) -> "Leases":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, DrainIncomplete):  # else a batch runs on, until the process ends
            self.close()


def _take(directory: Path) -> int:
    path = directory / LEASE
    while True:
        try:
            make_private(directory)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # a drop has removed the directory in between
        except OSError as error:
            raise _not_writable(directory, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                about = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
                os.ftruncate(handle, 0)
                os.pwrite(handle, about, 0)
                close_to_others(directory)
                return handle
        except BlockingIOError as error:
            holder = _written(handle)
            os.close(handle)
            raise StateHeld(
                f"another run holds '{directory}': {holder}",
                hint="stop it first; the lease ends with its process",
            ) from error
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the directory was removed in between


def _is_at(handle: int, path: Path) -> bool:
    """Tell whether an open file is the one that others find under this path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


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
        raise _not_writable(directory, error) from error


def _not_writable(directory: Path, error: OSError) -> StateError:
    a_file = isinstance(error, FileExistsError | NotADirectoryError)
    reason = "a file is in the way" if a_file else (error.strerror or "refused").lower()
    return StateError(
        f"the state directory '{directory}' cannot be written: {reason}",
        hint="set state.rocksdb.path to a folder that this user may write, on a disk with room",
    )


def find_holder(directory: Path) -> Holder | None:
    """Return who holds the state directory; None if no one does."""
    try:
        handle = os.open(directory / LEASE, os.O_RDONLY)
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
