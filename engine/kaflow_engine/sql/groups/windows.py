"""Windows among the items of GROUP BY."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.duck import binding
from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.windows import (
    CalendarWindow,
    FixedWindow,
    SessionWindow,
    Window,
)
from kaflow_engine.sql.groups.event_time import Clock
from kaflow_engine.sql.syntax import DIALECT

EXPLICIT = ("tumble", "hop", "session")
_TAKES = {
    "tumble": (1, "write tumble(INTERVAL 5 MINUTE)"),
    "hop": (2, "write hop(INTERVAL 10 MINUTE, INTERVAL 5 MINUTE): size and advance"),
    "session": (1, "write session(INTERVAL 30 SECOND)"),
}
_DAY = 86_400_000
_WEEK = 7 * _DAY
_MONDAY = 4 * _DAY
"""The first Monday behind the epoch."""
_BUCKETS_FROM = 946_857_600_000
"""Where DuckDB begins to count buckets: 2000-01-03."""
_MONTHS_FROM = 360
"""Where it begins to count those of months: January 2000, in months since January 1970."""

_META = "windows_change"

_SLOT = re.compile(r'"[^".]*\.([^"]*)"')
"""A column of a source."""

ClockOf = Callable[[exp.Expr], Clock | None]
"""What is known of an expression that is the event time of rows."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A window that an expression means."""

    window: Window
    type: str
    """Of the expression, which is the window's start."""
    explicit: bool
    passed_on: bool = False
    """It is the window of the rows, as they name it."""


def with_windows_that_change(query: exp.Query) -> exp.Query:
    """Return a query whose windows send rows before they are closed, so that these are a table."""
    marked = query.copy()
    sides = [marked]
    while sides:
        side = sides.pop()
        side.meta[_META] = True
        if isinstance(side, exp.SetOperation):
            sides += [side.this, side.expression]
    return marked


def windows_change(select: exp.Select) -> bool:
    """Tell whether the rows of a window of a SELECT replace each other."""
    return bool(select.meta.get(_META))


def leaves_once(select: exp.Select) -> bool:
    """Tell whether a SELECT groups by a call of a window function, and its rows leave when that is
    closed."""
    if windows_change(select) or select.args.get("group") is None:
        return False
    parts = (select.args["group"], *select.expressions)
    return any(function_named(node) for part in parts for node in part.find_all(exp.Anonymous))


def function_named(node: exp.Expr) -> str | None:
    """Return `tumble`, `hop` or `session` where a node calls it."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else None
    return name if name in EXPLICIT else None


def window_of(tree: exp.Expr, clock_of: ClockOf, at: Location | None) -> Found | None:
    """Return the window that an item of GROUP BY is; None of another expression.

    Args:
        tree: With columns resolved.
        clock_of: Knows the event time.
        at: Where it stands.

    Raises:
        SqlError: It is a window that cannot be.
    """
    tree = tree.unnest()
    name = function_named(tree)
    if name is not None:
        return Found(window=_explicit(name, tree, clock_of, at), type="TIMESTAMP", explicit=True)
    if isinstance(tree, exp.DateBin):
        clock, window = clock_of(tree.expression), _bucket(tree)
    elif isinstance(tree, exp.TimestampTrunc | exp.DateTrunc):
        clock, window = clock_of(tree.this), _truncated(tree.unit)
    else:
        clock = clock_of(tree)
        window = clock.named if clock else None
    if clock is None or window is None or not clock.covers(window):
        return None
    kind = _type_of(tree, clock)
    if kind is None:
        return None
    return Found(
        window=window, type=kind, explicit=False, passed_on=window in (clock.within, clock.named)
    )


def _explicit(
    name: str, call: exp.Expr, clock_of: ClockOf, at: Location | None
) -> FixedWindow | SessionWindow:
    count, hint = _TAKES[name]
    arguments: list[exp.Expr] = call.expressions
    if len(arguments) not in (count, count + 1):
        raise SqlError(f"{name}() takes {count} interval{'s' * (count > 1)}", at, hint)
    times, lengths = arguments[:-count], arguments[-count:]
    sizes = [_length(name, length, at, hint) for length in lengths]
    if name == "session":
        window = SessionWindow(gap=sizes[0])
    else:
        window = FixedWindow(size=sizes[0], advance=sizes[-1])
        if window.size % window.advance:
            raise SqlError(
                f"the size of hop() is no multiple of its advance: {_shown(lengths)}",
                at,
                "a row then would count in now more and now fewer windows; choose another advance",
            )
    for time in times:
        clock = clock_of(time)
        if clock is None or not clock.covers(window):
            raise SqlError(
                f"{name}() is over {_text(time)}, which is not the event time of the rows",
                at,
                f"leave it out, as in {hint.removeprefix('write ')}, and name the column under "
                "topics.<topic>.event_time",
            )
    return window


def _length(name: str, tree: exp.Expr, at: Location | None, hint: str) -> int:
    """Return the milliseconds of a constant interval."""
    shown = _text(tree)
    if tree.find(exp.Column):
        raise SqlError(f"{shown} in {name}() is not constant", at, hint)
    try:
        months, micros = binding.interval(tree.sql(dialect=DIALECT))
    except binding.Error as error:
        raise SqlError(f"{shown} in {name}() is no interval", at, hint) from error
    if months:
        raise SqlError(
            f"{name}() cannot have windows of months",
            at,
            "write date_trunc('month', _time), or time_bucket(INTERVAL 2 MONTH, _time)",
        )
    if micros <= 0 or micros % 1000:
        what = "not positive" if micros <= 0 else "no whole number of milliseconds"
        raise SqlError(f"{shown} in {name}() is {what}", at, hint)
    return micros // 1000


def _bucket(tree: exp.DateBin) -> Window | None:
    """Return the window that a call of `time_bucket` means, None where it is an expression."""
    third: exp.Expr | None = tree.args.get("unit")
    try:
        months, micros = binding.interval(tree.this.sql(dialect=DIALECT))
        from_month, from_time = _origin(third, by_month=bool(months))
    except binding.Error:
        return None
    if months > 0 and not micros:
        return CalendarWindow(months=months, origin=from_month % months)
    if months or micros <= 0 or micros % 1000 or from_time % 1000:
        return None
    size = micros // 1000
    return FixedWindow(size=size, advance=size, origin=from_time // 1000 % size)


def _origin(third: exp.Expr | None, *, by_month: bool) -> tuple[int, int]:
    """Return where buckets begin: a month since January 1970, and epoch microseconds."""
    if third is None:
        return _MONTHS_FROM, _BUCKETS_FROM * 1000
    sql = third.sql(dialect=DIALECT)
    (kind,) = binding.bind(f"SELECT {sql} AS x")
    if kind == "INTERVAL":
        months, micros = binding.interval(sql)
        if (bool(months) != by_month and (months or micros)) or (by_month and micros):
            raise binding.Error("an offset that moves no whole bucket")
        return _MONTHS_FROM + months, _BUCKETS_FROM * 1000 + micros
    if kind == "VARCHAR":
        raise binding.Error("a time zone")
    return binding.moment(sql)


def _truncated(unit: exp.Expr | None) -> Window | None:
    """Return the window that a unit of `date_trunc` means, None where there is none."""
    name = unit.name if unit is not None else ""
    try:
        months, micros = binding.interval(f"'1 {name}'" if name.isalpha() else "NULL")
    except binding.Error:
        return None
    if months:
        return CalendarWindow(months=months, origin=_MONTHS_FROM % months)
    size = micros // 1000
    if not size:
        return None
    return FixedWindow(size=size, advance=size, origin=_MONDAY if size == _WEEK else 0)


def _type_of(tree: exp.Expr, clock: Clock) -> str | None:
    """Return the type that an expression over the event time has; None where it cannot be bound."""
    if not isinstance(tree, exp.DateBin | exp.TimestampTrunc | exp.DateTrunc):
        return clock.type
    copy = tree.copy()
    time = copy.expression if isinstance(copy, exp.DateBin) else copy.this
    time.replace(exp.cast(exp.null(), clock.type, dialect=DIALECT))
    try:
        return binding.bind(f"SELECT {copy.sql(dialect=DIALECT)} AS x")[0]
    except binding.Error:
        return None


def _text(tree: exp.Expr) -> str:
    return plain(_SLOT.sub(r"\1", tree.sql(dialect=DIALECT)))


def _shown(lengths: list[exp.Expr]) -> str:
    return " and ".join(_text(length) for length in lengths)
