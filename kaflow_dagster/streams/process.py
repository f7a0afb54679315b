"""The process of a session: named so that another one of the same number is never taken for it."""

import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process of some host."""

    host: str
    pid: int
    began: str
    """When it began, in ticks since its host did; empty where the system does not tell."""

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.began}"

    @staticmethod
    def parse(text: str) -> "Process | None":
        """Read what `str` wrote; None for anything else."""
        host, _, rest = text.partition(":")
        pid, _, began = rest.partition(":")
        return Process(host, int(pid), began) if host and pid.isdecimal() else None

    @property
    def alive(self) -> bool:
        """Tell whether it still is there, on this host."""
        return self == process_of(self.pid)

    def kill(self) -> bool:
        """Kill it if it is of this host and still there; say whether it is gone for sure."""
        if self.host != socket.gethostname():
            return False
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        return True


def this_process() -> Process:
    """Return the process that calls."""
    found = process_of(os.getpid())
    assert found is not None
    return found


def process_of(pid: int) -> Process | None:
    """Return the process that has this number on this host, if there is one."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return Process(socket.gethostname(), pid, _began(pid))


def _began(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
