"""Gives back what a large batch has left in the allocators of a Python worker.

They keep what is freed for later; a worker whose batches have become small again would hold on to
the most that it ever needed.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportAttributeAccessIssue=false
# pyarrow is untyped

import ctypes
from collections.abc import Callable
from functools import cache

import pyarrow as pa


def release() -> None:
    """Return free memory to the system; takes some milliseconds."""
    pa.default_memory_pool().release_unused()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], object] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, other libraries do not
