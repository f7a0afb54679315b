"""Into which windows a row falls, and when they are over; times are epoch milliseconds."""

from typing import Any, assert_never

import numpy as np

from kaflow_engine.flow.windows import CalendarWindow, FixedWindow

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def assigned(window: FixedWindow | CalendarWindow, times: Numbers) -> tuple[Numbers, Numbers]:
    """Return the windows of rows, one row after the other, each row's in ascending order.

    Returns:
        The place of the row in `times`, and the start of the window.
    """
    match window:
        case FixedWindow(size=size, advance=advance, origin=origin):
            last = (times - origin) // advance * advance + origin
            count = size // advance
            starts = last[:, None] - advance * np.arange(count - 1, -1, -1)
            return np.repeat(np.arange(len(times)), count), starts.reshape(-1)
        case CalendarWindow(months=months, origin=origin):
            month = _months(times)
            return np.arange(len(times)), _instants((month - origin) // months * months + origin)
        case _:
            assert_never(window)


def ends_of(window: FixedWindow | CalendarWindow, starts: Numbers) -> Numbers:
    """Return the ends of windows, which do not belong to them."""
    match window:
        case FixedWindow(size=size):
            return starts + size
        case CalendarWindow(months=months):
            return _instants(_months(starts) + months)
        case _:
            assert_never(window)


def _months(times: Numbers) -> Numbers:
    return times.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)


def _instants(months: Numbers) -> Numbers:
    return months.astype("datetime64[M]").astype("datetime64[ms]").astype(np.int64)
