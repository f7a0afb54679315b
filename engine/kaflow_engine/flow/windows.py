"""Windows of event time: which of them a row falls into, and when they are over.

Times are epoch milliseconds. A window is known by its start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from kaflow_engine.model.durations import format_duration

WINDOW_START, WINDOW_END = "window_start", "window_end"
ROW_TIME = "_time"
"""The column with the event time of a group."""
"""Columns of the rows of windows: TIMESTAMP, UTC."""

_LONGEST_MONTH = 31 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedWindow:
    """Windows of one length: tumbling where `advance` is `size`, else hopping."""

    type: Literal["fixed"] = "fixed"
    size: int
    """Milliseconds; a multiple of `advance`."""
    advance: int
    """Milliseconds from one start to the next."""
    origin: int = 0
    """The start of some window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarWindow:
    """Windows of months, in UTC."""

    type: Literal["calendar"] = "calendar"
    months: int
    origin: int = 0
    """The start of some window, in months since January 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """Rows of a group whose distance is at most the gap."""

    type: Literal["session"] = "session"
    gap: int
    """Milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWindow:
    """Windows of one length, of which each row names one by its start: those of rows that other
    windows have sent."""

    type: Literal["named"] = "named"
    size: int
    """Milliseconds."""


Window = FixedWindow | CalendarWindow | SessionWindow | NamedWindow
NAMED_START = "$start"
"""The argument of an aggregate that is the start of the window of a row."""


def span_of(window: Window) -> int:
    """Return how many milliseconds a row may be older than the end of its window, at most."""
    match window:
        case FixedWindow(size=size) | NamedWindow(size=size):
            return size
        case CalendarWindow(months=months):
            return months * _LONGEST_MONTH
        case SessionWindow(gap=gap):
            return gap
        case _:
            assert_never(window)


def window_text(window: Window) -> str:
    """Return a window as people write it.

    >>> window_text(FixedWindow(size=60_000, advance=10_000))
    'hop 1m every 10s'
    """
    match window:
        case FixedWindow(size=size, advance=advance):
            if size == advance:
                return f"tumble {format_duration(size)}{_from(window.origin)}"
            return f"hop {format_duration(size)} every {format_duration(advance)}"
        case CalendarWindow(months=months):
            return f"calendar {months} month{'s' if months > 1 else ''}"
        case SessionWindow(gap=gap):
            return f"session {format_duration(gap)}"
        case NamedWindow(size=size):
            return f"the window of {format_duration(size)} that the row is of"
        case _:
            assert_never(window)


def _from(origin: int) -> str:
    return f" from {format_duration(origin)} behind the epoch" if origin else ""


def window_of(data: Mapping[str, Any]) -> Window:
    """Return the window of plain data, as `asdict` gives it."""
    kinds = {
        "fixed": FixedWindow,
        "calendar": CalendarWindow,
        "session": SessionWindow,
        "named": NamedWindow,
    }
    return kinds[data["type"]](**data)
