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
_LARGE = 50_000
"""Rows from which on a task leaves much memory behind."""
_released = [time.monotonic()]
_large = [False]


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


def keep_or_release(rows: int) -> None:
    """Keep what a large task has freed for the next one; return it after a small one follows.

    Asking the system for it again takes a large task as long as to decode its records.
    """
    if rows > _LARGE:
        _large[0] = True
    elif _large[0]:
        _large[0] = False
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
