"""Into which windows a row falls, and when they are over; times are epoch milliseconds."""

from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.windows import NAMED_START, CalendarWindow, FixedWindow, NamedWindow
from kaflow_engine.operators.rows.row_text import unpack

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


def windows_of(
    aggregate: Aggregate, window: FixedWindow | CalendarWindow | NamedWindow, rows: pa.Table
) -> tuple[Numbers, Numbers]:
    """Return the windows of rows of schema EXCHANGE, as `assigned` does."""
    if not isinstance(window, NamedWindow):
        return assigned(window, rows["ts"].to_numpy())
    place = [column.name for column in aggregate.arguments].index(NAMED_START) + 1
    start = f"epoch_ms(CAST({unpack('payload')}[{place}] AS TIMESTAMP))"
    given = pa.table({"rn": np.arange(rows.num_rows), "payload": rows["payload"]})
    found = query(f"SELECT rn, {start} AS start FROM rows ORDER BY rn", rows=given)
    return np.arange(rows.num_rows), found["start"].to_numpy()


def ends_of(window: FixedWindow | CalendarWindow | NamedWindow, starts: Numbers) -> Numbers:
    """Return the ends of windows, which do not belong to them."""
    match window:
        case FixedWindow(size=size) | NamedWindow(size=size):
            return starts + size
        case CalendarWindow(months=months):
            return _instants(_months(starts) + months)
        case _:
            assert_never(window)


def _months(times: Numbers) -> Numbers:
    return times.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)


def _instants(months: Numbers) -> Numbers:
    return months.astype("datetime64[M]").astype("datetime64[ms]").astype(np.int64)
