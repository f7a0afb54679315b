"""The live view's data: the progress of all running pipelines."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kaflow_engine.telemetry.progress import CLASSES, Progress
from kaflow_engine.telemetry.verdict import judge

ROWS = 3
"""Newest rows that are kept of each topic."""

_WINDOW_S = 10.0


class Rate:
    """How fast a count grows, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, count: int, now: float) -> float:
        """Take the count at one moment (s) and return its growth per second."""
        self._seen.append((now, count))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        since = now - self._seen[0][0]
        return max(count - self._seen[0][1], 0) / since if since > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One pipeline, ready to be shown."""

    pipeline: str
    state: str
    batch: int
    records_in: float
    """Records per second."""
    rows_out: float
    """Driving records that were emitted, per second."""
    lag: int
    waiting: int
    dead_letters: int
    watermark: str
    error: str | None
    verdict: str
    """Why it is idle or slow, in a word or two."""


@dataclass(kw_only=True)
class Board:
    """Collects progress and rows from other threads; each assignment is one step."""

    names: Sequence[str]
    clock: Callable[[], float] = time.monotonic
    newest: dict[str, Progress] = field(default_factory=dict[str, Progress])
    """The last progress of each pipeline."""
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The newest rows of each output topic, as text."""
    last_row: tuple[str, str] | None = None
    """Topic and text of the newest of all."""
    changes: deque[str] = field(default_factory=deque[str])
    """What happened and was not shown yet."""
    _in: dict[str, Rate] = field(default_factory=dict[str, Rate])
    _out: dict[str, Rate] = field(default_factory=dict[str, Rate])

    def progress(self, progress: Progress) -> None:
        """Take the progress of one pipeline."""
        name = progress.pipeline
        before = self.newest.get(name)
        self.newest[name] = progress
        if before is None or before.state != progress.state:
            why = progress.last_error if progress.state in ("degraded", "failed") else None
            self.changes.append(f"{name}: {progress.state}{f' ({why})' if why else ''}")

    def show_rows(self, rows: Iterable[tuple[str, str]]) -> None:
        """Take topic and text of new output rows, oldest first."""
        for topic, text in rows:
            self.rows[topic] = (*self.rows.get(topic, ()), text)[-ROWS:]
            self.last_row = topic, text

    def lines(self) -> list[Line]:
        """Return every pipeline as it stands; rates are those since the last calls."""
        now = self.clock()
        found: list[Line] = []
        for name in self.names:
            at = self.newest.get(name, Progress(pipeline=name))
            emitted = at.counters.get("emitted", 0)
            found.append(
                Line(
                    pipeline=name,
                    state=at.state,
                    batch=at.batch,
                    records_in=self._in.setdefault(name, Rate()).note(at.records, now),
                    rows_out=self._out.setdefault(name, Rate()).note(emitted, now),
                    lag=sum(at.lag.values()),
                    waiting=at.waiting,
                    dead_letters=at.dead_letters,
                    watermark=clock_text(at.watermark),
                    error=at.last_error if at.state in ("degraded", "failed") else None,
                    verdict=judge(at).kind,
                )
            )
        return found


def account(counters: Mapping[str, int]) -> tuple[int, dict[str, int], int]:
    """Return the driving records read, what became of them, and what is unaccounted for.

    >>> account({"read": 3, "emitted": 2, "waiting": 1})[2]
    0
    """
    read = counters.get("read", 0)
    classes = {name: counters.get(name, 0) for name in CLASSES}
    return read, classes, read - sum(classes.values())


def clock_text(milliseconds: int | None) -> str:
    """Return a moment as a person reads it, in UTC.

    >>> clock_text(1_767_225_600_000), clock_text(None)
    ('2026-01-01 00:00:00Z', '-')
    """
    if milliseconds is None:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return "the end"
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"
