"""What processes use: memory and CPU seconds of a process and all below it, from /proc."""

import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.measure.rates import Rate, grown

Role = Literal["driver", "jvm", "worker"]

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One process at one moment."""

    pid: int
    role: Role
    rss: int
    """Bytes; a page that several processes share counts to each with its share."""
    cpu: float
    """Seconds, without those of its children."""


def tree(root: int) -> list[Usage]:
    """Return a process and everything below it: the driver, its JVM, and Python workers."""
    parents: dict[int, int] = {}
    found: dict[int, tuple[str, float]] = {}
    for pid in _pids():
        with suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
            name = text[text.index("(") + 1 : text.rindex(")")]
            fields = text[text.rindex(")") + 2 :].split()
            parents[pid] = int(fields[1])
            cpu = sum(int(ticks) for ticks in fields[11:13]) / _TICK
            found[pid] = (name, cpu)
    usages: list[Usage] = []
    for pid, (name, cpu) in found.items():
        if _below(pid, root, parents):
            with suppress(OSError):  # it has just ended
                usages.append(Usage(pid=pid, role=_role(pid, root, name), rss=_rss(pid), cpu=cpu))
    return usages


def _rss(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


@dataclass(slots=True)
class Watched:
    """What was seen of processes while they ran; memory in MiB."""

    tree: float = 0.0
    """The most memory of all of them at one moment."""
    worker: float = 0.0
    """The most of one Python worker."""
    cpu: dict[str, list[tuple[float, float]]] = field(
        default_factory=dict[str, list[tuple[float, float]]]
    )
    """By role: epoch milliseconds, and CPU seconds until then."""

    _spent: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    """By role and process; those that have ended count on."""

    def for_a_million(self, rate: Rate) -> dict[str, float]:
        """Return CPU seconds for a million records, by role; what others do to the machine hurts it
        little."""
        records = rate.records_per_s * (rate.stop - rate.start) / 1000
        return {
            role: round(grown(points, rate.start, rate.stop) / records * 1e6, 3)
            for role, points in self.cpu.items()
        }

    def take(self, usages: list[Usage], broker: list[Usage]) -> None:
        """Count one sample."""
        if not usages:
            return
        self.tree = max(self.tree, sum(u.rss for u in usages) / 2**20)
        self.worker = max(self.worker, most_rss(usages, "worker"))
        at = time.time() * 1000
        self._spent |= {(usage.role, usage.pid): usage.cpu for usage in usages}
        self._spent |= {("broker", usage.pid): usage.cpu for usage in broker}
        total = {"driver": 0.0, "jvm": 0.0, "worker": 0.0, "broker": 0.0}
        for (role, _), seconds in self._spent.items():
            total[role] += seconds
        for role, seconds in total.items():
            self.cpu.setdefault(role, []).append((at, seconds))


@contextmanager
def watched(root: int, broker: int, every: float = 1.0) -> Generator[Watched]:
    """Sample the trees below two processes while the block runs; memory counts of the first."""
    found = Watched()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(every):
            found.take(tree(root), tree(broker))

    thread = threading.Thread(target=look, name="bench-watch", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def most_rss(usages: list[Usage], role: Role) -> float:
    """Return the memory of the largest process of a role, in MiB."""
    return max((u.rss for u in usages if u.role == role), default=0) / 2**20


def _role(pid: int, root: int, name: str) -> Role:
    if pid == root:
        return "driver"
    # what Spark has just forked bears the name of a thread, and shows the memory of the JVM
    return "worker" if name.startswith("python") else "jvm"


def _below(pid: int, root: int, parents: dict[int, int]) -> bool:
    seen = set[int]()
    while pid != root:
        if pid not in parents or pid in seen:
            return False
        seen.add(pid)
        pid = parents[pid]
    return True


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())
