"""Keeps the progress of one pipeline and hands every change to whoever watches."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kaflow_engine.runtime.batches import BatchDone
from kaflow_engine.runtime.progress import Progress
from kaflow_engine.state.log import Offsets

OnProgress = Callable[[Progress], None]

_WINDOW_S = 10.0


class Watch:
    """The progress of one pipeline; used by one thread at a time."""

    def __init__(self, pipeline: str, on_progress: OnProgress) -> None:
        self.now = Progress(pipeline=pipeline)
        self.batches = 0
        self._tell = on_progress
        self._recent: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def say(self, **changes: Any) -> None:
        """Change some fields of the progress and tell."""
        self.now = replace(self.now, **changes)
        self._tell(self.now)

    def batch_done(self, done: BatchDone, ends: Offsets) -> None:
        """Tell of a batch; `ends` is how far the topics reached when it began."""
        read = sum(part.count for part in done.report.partitions.values())
        self.batches += 1
        at = done.standing
        self.say(
            batch=at.batch,
            batch_records=read,
            batch_ms=done.seconds * 1000,
            records=self.now.records + read,
            records_per_second=self._rate(read),
            lag=lag_of(at.offsets, ends),
            counters=at.counters,
            watermark=at.watermark.value,
            batch_time=at.batch_time,
            phases=done.phases,
        )

    def _rate(self, read: int) -> float:
        now = time.monotonic()
        self._recent.append((now, read))
        while len(self._recent) > 2 and now - self._recent[0][0] > _WINDOW_S:
            self._recent.popleft()
        since = now - self._recent[0][0]
        return sum(n for _, n in list(self._recent)[1:]) / since if since > 0 else 0.0


def lag_of(at: Offsets, ends: Offsets) -> dict[str, int]:
    """Return, by topic, how many offsets are not read yet."""
    return {
        topic: sum(max(end - at.get(topic, {}).get(p, 0), 0) for p, end in ps.items())
        for topic, ps in sorted(ends.items())
    }
