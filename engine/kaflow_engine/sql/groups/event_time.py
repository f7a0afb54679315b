"""The event time of rows, in whatever form a query has it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from kaflow_engine.flow.tables import APPEND_TIME
from kaflow_engine.flow.transforms import PASSED
from kaflow_engine.flow.windows import (
    WINDOW_START,
    CalendarWindow,
    FixedWindow,
    NamedWindow,
    Window,
)
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.scope import Schemas

TIME = "_time"


@dataclass(frozen=True, kw_only=True)
class EventTimes:
    """What is known of the event times of topics."""

    column: Callable[[str, str | None], str | None] = lambda _, reading: None
    """The column of a topic that holds its event time, as it is read under the name of a reading or
    its own; None: that of Kafka."""
    counts: Callable[[str, int | None], bool] = lambda _, line: False
    """Whether the time of a record of a topic that is joined in a line counts for the row, too,
    which then has the greatest one."""


_DAY = 86_400_000
_SCALES = {"3": 1, "6": 1000}
"""What milliseconds are multiplied by for `epoch_ms` and `make_timestamp`."""
_TIMESTAMPS = {
    exp.DType.TIMESTAMP: "TIMESTAMP",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
}


@dataclass(frozen=True, kw_only=True)
class Clock:
    """An expression that is the event time of a row."""

    type: str
    """Its type, as DuckDB writes it."""
    within: Window | None = None
    """The window whose start it is; None: it is the time itself."""

    @property
    def named(self) -> Window | None:
        """The window that it is the start of, as rows can be grouped by it; None of others."""
        match self.within:
            case FixedWindow(size=size, advance=advance) if size != advance:
                return NamedWindow(size=size)  # by its time a row may be in several
            case window:
                return window

    def covers(self, window: Window) -> bool:
        """Tell whether rows fall into the same window by this expression as by their time, or are
        of it by name."""
        match self.within, window:
            case None, _:
                return True
            case _, NamedWindow():
                return window == self.named
            case FixedWindow() as inner, _ if inner.advance != inner.size:
                return False
            case FixedWindow() as inner, CalendarWindow():
                return not _DAY % inner.size and not inner.origin % inner.size
            case FixedWindow() as inner, FixedWindow() as outer:
                apart = (outer.origin - inner.origin) % inner.size
                return not outer.advance % inner.size and not outer.size % inner.size and not apart
            case CalendarWindow() as inner, CalendarWindow() as outer:
                apart = (outer.origin - inner.origin) % inner.months
                return not outer.months % inner.months and not apart
            case _:
                return False


def clock_of(tree: exp.Expr, rows: Flat, schemas: Schemas, event_times: EventTimes) -> Clock | None:
    """Return what is known of an expression that is the event time of rows; None of another one.

    Args:
        tree: With columns resolved.
        rows: Those that are grouped.
        schemas: Columns of topics.
        event_times: Of topics.
    """
    if rows.is_table:
        return None
    tree = tree.unnest()
    if isinstance(tree, exp.Cast) and tree.to.this in _TIMESTAMPS:
        inner = clock_of(tree.this, rows, schemas, event_times)
        if inner is None or "INT" in inner.type:
            return None
        return Clock(type=_TIMESTAMPS[tree.to.this], within=inner.within)
    of_numbers = _milliseconds(tree)
    if of_numbers is not None:
        inner = clock_of(of_numbers, rows, schemas, event_times)
        return Clock(type="TIMESTAMP") if inner and "INT" in inner.type else None
    if not isinstance(tree, exp.Column):
        return None
    alias, _, name = tree.name.partition(".")
    if rows.groups:
        group = rows.groups[-1]
        if alias != group.alias:
            return None
        if group.distinct and name in group.keys:
            below = replace(rows, groups=rows.groups[:-1])
            return clock_of(group.keys[name], below, schemas, event_times)
        if group.transform is not None:
            below = replace(rows, groups=rows.groups[:-1])
            passed = group.keys.get(name) if name == f"{PASSED}{TIME}" else None
            return None if passed is None else clock_of(passed, below, schemas, event_times)
        if group.append is not None:
            return Clock(type="TIMESTAMP") if name == APPEND_TIME else None
        if name not in (TIME, WINDOW_START):
            return None
        return Clock(type="TIMESTAMP", within=group.window if name == WINDOW_START else None)
    driving, topic = rows.sources[0]
    if rows.rows_of is not None:
        return clock_of(tree, rows.rows_of, schemas, event_times) if alias == driving else None
    lines = {join.alias: join.line for join in rows.joins}
    events = [each for each in rows.sources[1:] if each[0] not in rows.tables]
    if alias != driving or any(event_times.counts(of, lines.get(name)) for name, of in events):
        return None
    columns = {column.name.lower(): column for column in schemas(topic) or ()}
    if name == TIME and TIME not in columns:
        return Clock(type="TIMESTAMP")
    said = event_times.column(topic, rows.readings.get(driving))
    if said is None or said.lower() != name.lower():
        return None
    found = columns.get(name.lower())
    return Clock(type=found.type if found else "TIMESTAMP")


def _milliseconds(tree: exp.Expr) -> exp.Expr | None:
    """Return the milliseconds of which a call makes a time."""
    if isinstance(tree, exp.Anonymous) and tree.name.lower() == "make_timestamp_ms":
        return tree.expressions[0] if len(tree.expressions) == 1 else None
    if not isinstance(tree, exp.UnixToTime):
        return None
    factor = _SCALES.get(tree.args["scale"].name) if tree.args.get("scale") else None
    inner = tree.this.unnest()
    if factor == 1:
        return inner
    if factor is None or not isinstance(inner, exp.Mul):
        return None
    sides = (inner.left.unnest(), inner.right.unnest())
    plain = [side for side in sides if not isinstance(side, exp.Literal)]
    return plain[0] if len(plain) == 1 and str(factor) in [s.name for s in sides] else None
