"""What goes wrong in a run without Spark: its clock, its writes to a bucket, its disk."""

import errno
import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kaflow_engine.state.storage import bucket, store

MONTH = 30 * 24 * 3_600_000


def wild(after: int | None, now: int) -> Callable[[], int]:
    """Return a clock that stands still, and is a month ahead from some reading on."""
    readings = itertools.count()
    return lambda: now if after is None or next(readings) < after else now + MONTH


def kill_behind(writes: int) -> None:
    """Kill this process at the write to the bucket after so many."""
    left = itertools.count(writes, -1)

    def counted(write: Any) -> Any:
        def write_or_die(*about: Any) -> Any:
            if next(left) <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return write(*about)

        return write_or_die

    bucket.Bucket.put = counted(bucket.Bucket.put)  # type: ignore[method-assign]
    bucket.Bucket.upload = counted(bucket.Bucket.upload)  # type: ignore[method-assign]


def fill(room: int) -> None:
    """Let every file after the first `room` ones fail as on a full disk, half written."""
    left = itertools.count(room, -1)

    def full(write: Any) -> Any:
        def write_some(target: Path, data: bytes) -> None:
            if next(left) > 0:
                return write(target, data)
            target.write_bytes(bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return write_some

    copy = store._copy
    store._write = full(store._write)
    store._copy = lambda source, target: (
        full(lambda path, data: None)(target, source.read_bytes()) or copy(source, target)
    )
