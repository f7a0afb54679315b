"""Batch time: the wall clock, bounded by the monotonic clock of the process."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from kaflow_engine.errors import KaflowError, RunError
from kaflow_engine.model.durations import format_duration

LOGGER = logging.getLogger("kaflow.runtime")

SLACK_MS = 1_000
"""How far the machine's clock may run ahead of the time that passed before brokers are asked."""

_ASK_AGAIN_MS = 30_000


class ClockWrong(RunError):
    """The clocks of this machine and of the brokers differ by too much."""


def wall_clock() -> int:
    """Return the machine's clock: epoch milliseconds, which may jump."""
    return time.time_ns() // 1_000_000


def steady_clock() -> int:
    """Return milliseconds that only pass, also while the machine sleeps where it can tell."""
    kind = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(kind) // 1_000_000


class BatchClock:
    """Epoch milliseconds that never run ahead of the time that passed, unless brokers agree.

    Batch time cannot be taken back: one batch with the date of tomorrow lets all that waits expire.
    """

    def __init__(
        self, wall: Callable[[], int] = wall_clock, steady: Callable[[], int] = steady_clock
    ) -> None:
        self._wall, self._steady = wall, steady
        self._believed: int | None = None  # the machine's clock less the steady one
        self._ahead = 0
        self._asked: int | None = None
        self._brokers: Callable[[], int | None] = lambda: None
        self._most = 0
        self._tell: Callable[[int], object] = lambda ahead: None

    def confirm(
        self, brokers: Callable[[], int | None], most: int, tell: Callable[[int], object]
    ) -> None:
        """Compare with the brokers' clock, at a start; from here on it is asked about jumps.

        Args:
            brokers: Returns their time in epoch milliseconds; None: they do not tell it.
            most: Milliseconds by which clocks may differ.
            tell: Hears by how many milliseconds the machine's clock is ahead and not believed.

        Raises:
            ClockWrong: They differ by more.
        """
        self._brokers, self._most, self._tell = brokers, most, tell
        theirs, now = brokers(), self._wall()
        if theirs is None:
            LOGGER.info("no broker tells the time, which would bear out this machine's")
        elif abs(now - theirs) > most:
            raise ClockWrong(
                f"the clock of this machine says {_moment(now)}, that of the brokers "
                f"{_moment(theirs)}: they differ by {format_duration(abs(now - theirs))}",
                hint="set the one that is wrong: a batch of a wrong time would let rows that wait "
                f"expire, for good ('max_clock_skew' is {format_duration(most)})",
            )
        if theirs is not None or self._believed is None:
            self._believe(now - self._steady())

    def __call__(self) -> int:
        """Return the time for the next batch."""
        wall = self._wall()
        steady = self._steady()  # behind the other one: a process that froze between them lags
        gap = wall - steady
        if self._believed is None:
            return wall
        if gap <= self._believed + SLACK_MS:
            if self._ahead:
                LOGGER.warning("the clock of this machine is right again")
                self._believe(self._believed)
            return wall
        if self._is_borne_out(wall, steady):
            LOGGER.info(
                "the clock of this machine moved on by %s, and the brokers agree",
                format_duration(gap - self._believed),
            )
            self._believe(gap)
            return wall
        self._doubt(gap - self._believed)
        return steady + self._believed

    def _is_borne_out(self, wall: int, steady: int) -> bool:
        if self._asked is not None and steady - self._asked < _ASK_AGAIN_MS:
            return False
        self._asked = steady
        try:
            theirs = self._brokers()
        except KaflowError as error:
            LOGGER.debug("the brokers do not say how late it is: %s", error)
            return False
        return theirs is not None and abs(wall - theirs) <= self._most

    def _believe(self, gap: int) -> None:
        self._believed, self._asked = gap, None
        if self._ahead:
            self._ahead = 0
            self._tell(0)

    def _doubt(self, ahead: int) -> None:
        if not self._ahead:
            LOGGER.warning(
                "the clock of this machine jumped %s ahead, and the brokers do not bear it out; "
                "batch time goes on without it",
                format_duration(ahead),
            )
        if abs(ahead - self._ahead) > SLACK_MS:
            self._ahead = ahead
            self._tell(ahead)


def warn_of_future(batch_time: int, now: int) -> None:
    """Log a warning where the last batch has a time that lies ahead of now."""
    if batch_time > now + SLACK_MS:
        LOGGER.warning(
            "batch time is at %s, %s ahead of now, and stays there until then: nothing expires, "
            "and no topic falls idle; it was given by a clock that was wrong",
            _moment(batch_time),
            format_duration(batch_time - now),
        )


def _moment(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
