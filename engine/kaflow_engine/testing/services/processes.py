"""The processes of this machine, as Linux lists them."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """What is known of a process: the start of its program's name, the letter of its state."""

    name: str
    state: str
    parent: int

    @property
    def ended(self) -> bool:
        """It is gone, or no one has asked yet how it ended."""
        return self.state in ("X", "Z")


_GONE = Process("", "X", 0)


def look(pid: int) -> Process:
    """Return a process; what it was is unknown once it has gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _GONE
    before, _, after = stat.rpartition(")")
    state, parent, *_ = after.split()
    return Process(before.partition("(")[2], state, int(parent))


def commands_of(words: str) -> list[bytes]:
    """Return the command lines of the running processes that have these words."""
    found: list[bytes] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            found.append(file.read_bytes())
    return [command for command in found if words.encode() in command]


class Processes:
    """All processes at one moment: reading them once answers many questions."""

    def __init__(self) -> None:
        """Look at all of them."""
        numbers = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit())
        self._all: Mapping[int, Process] = {int(pid): look(int(pid)) for pid in numbers}

    def __getitem__(self, pid: int) -> Process:
        """Return what a process was at that moment."""
        return self._all.get(pid, _GONE)

    def children(self, pid: int) -> tuple[int, ...]:
        """Return the processes whose parent is `pid`, sorted.

        The kernel's own lists of children lie below threads, and those of a JVM come and go.
        """
        return tuple(sorted(found for found, each in self._all.items() if each.parent == pid))

    def tree(self, pid: int) -> tuple[int, ...]:
        """Return `pid` and all processes below it, parents first."""
        found = [pid]
        for each in found:
            found += self.children(each)
        return tuple(found)
