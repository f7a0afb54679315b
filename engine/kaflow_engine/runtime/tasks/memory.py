"""Memory of processes that live for a long time.

Allocators keep what was freed for later, in pieces that fit less and less; a worker whose batches
have become small again would hold on to the most that it ever needed.
"""

import ctypes
import gc
import os
import time
from collections.abc import Callable
from functools import cache, lru_cache

import pyarrow as pa

_EVERY_S = 30.0
_LARGE = 25_000
"""Rows of a task whose like will soon want as much memory again, while topics have more."""
_MUCH = 10_000
"""Rows that a task reads, or entries that it changes, from which on it leaves much behind."""
_released = [time.monotonic()]
_kept = [False]


def release() -> None:
    """Return free memory to the system; takes some milliseconds."""
    _released[0] = time.monotonic()
    pa.default_memory_pool().release_unused()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def release_now_and_then() -> None:
    """Return free memory to the system if that was not done for half a minute."""
    if time.monotonic() - _released[0] > _EVERY_S:
        release()


def keep_or_release(read: int, changed: int, *, more: bool) -> None:
    """Keep what a task that read much has freed while another batch follows at once; else return
    it.

    To get it from the system again takes as long as to decode the records.

    Args:
        read: Rows that the task has read.
        changed: Entries of states that it has put or deleted.
        more: Whether another batch follows at once.
    """
    if more and read > _LARGE:
        _kept[0] = True
    elif _kept[0] or max(read, changed) > _MUCH:
        _kept[0] = False
        release()
    release_now_and_then()


def settle_in() -> None:
    """Exempt from garbage collection what this process has loaded; for the end of its first task.

    Spark has its workers collect after every task, which for all the modules takes as long as the
    work of a small task.
    """
    _freeze(os.getpid())


@lru_cache(maxsize=1)
def _freeze(_pid: int) -> None:
    gc.collect()
    gc.freeze()


@cache
def _malloc_trim() -> Callable[[int], object] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, other libraries do not
