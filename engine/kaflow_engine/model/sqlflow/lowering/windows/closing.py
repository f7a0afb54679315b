"""When windows of a table are closed and what leaves then: as `window` says it, or the SQL of a
`manager` that collects and deletes them."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from kaflow_engine.errors import Location
from kaflow_engine.model.spec import Path
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, SqlText
from kaflow_engine.model.sqlflow.lowering.statements import parsed
from kaflow_engine.model.sqlflow.sink_specs import SinkSpec
from kaflow_engine.model.sqlflow.specs import ManagerSpec, TableSpec, WindowSpec

_CLOSED = "closed"
"""What `emit_sql` calls the rows of windows that have closed."""
_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}
_NOW = r"(?:CAST\()?(?:NOW\(\)|CURRENT_TIMESTAMP(?:\(\))?)(?: AS TIMESTAMPTZ\))?"
_SPAN = rf"INTERVAL '(\d+)' ({'|'.join(_UNITS)})"
_BY_CLOCK = re.compile(rf"(\w+) < \(?{_NOW} - {_SPAN}\)?", re.IGNORECASE)
_BY_ROWS = re.compile(
    rf"(\w+) < \(SELECT MAX\(\1\) FROM (\w+)\) - {_SPAN}"
    rf"(?: OR \(SELECT {_NOW} - last_arrival FROM sqlflow_progress\) > {_SPAN})?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """When windows are closed, and what leaves then."""

    at: Location
    time_column: str
    after: int
    """Seconds."""
    counted: Literal["end", "start", "newest"] = "end"
    """From where: the end of a window; its start, by a clock; or the start of the newest window, as
    rows that come later say it."""
    idle: int | None = None
    """Seconds for which a partition without messages holds windows open."""
    on_late: Literal["drop", "dead_letter"] = "drop"
    emit: SqlText | None = None
    """None: the groups as they are."""
    reads: str = _CLOSED
    """What `emit` calls the groups."""
    sink: SinkSpec
    sink_path: Path
    size: int | None = None
    """Seconds of a window, where it is said."""
    made: str | None = None
    """SQL of windows that the engine makes of the time of a row; None: the handler says them."""

    def grace(self, size: int) -> int:
        """Return the seconds between the end of a window and its close.

        Args:
            size: Seconds of a window.
        """
        match self.counted:
            case "end":
                return self.after
            case "start":
                return max(0, self.after - size)
            case "newest":
                return self.after // size * size


def closing_of(said: Said, table: TableSpec, path: Path, mistakes: Mistakes) -> Closing | None:
    """Return when windows of a table are closed; None: it has none that are known.

    Args:
        said: The file.
        table: The table.
        path: Where it stands.
        mistakes: What is wrong is added.
    """
    if table.window is not None:
        return _of_window(said, table.window, (*path, "window"), mistakes)
    if table.manager is not None:
        own: Path = (*path, "manager")
        found = _of_manager(said, table, table.manager, own)
        if found is None:
            mistakes.add(
                "windows that are collected and deleted by SQL of their own are not available",
                said.at(*own),
                "write window: {time_column: …, size_seconds: …, emit_sql: …, sink: …}; the engine "
                f"closes it by event time. Of such SQL SELECT … FROM {table.name} WHERE bucket < "
                "now() - INTERVAL '60' SECOND is known, and a DELETE with the same WHERE",
            )
        return found
    mistakes.add(
        f"the table '{table.name}' has no window, and tables that last are not available",
        said.at(*path),
        "give it window: {…}, or keep its rows in a database by a postgres sink",
    )
    return None


def _of_window(said: Said, spec: WindowSpec, path: Path, mistakes: Mistakes) -> Closing:
    if spec.late_rows == "reemit":
        mistakes.add(
            "late rows cannot be emitted again",
            said.at(*path, "late_rows"),
            "write late_rows: drop or dead_letter, and let grace_seconds cover what comes late",
        )
    return Closing(
        at=said.at(*path),
        size=spec.size_seconds,
        made=_made(said, spec, path, mistakes),
        time_column=spec.time_column,
        after=spec.grace_seconds,
        idle=spec.idle_close_seconds,
        on_late="dead_letter" if spec.late_rows == "dead_letter" else "drop",
        emit=said.sql(*path, "emit_sql") if spec.emit_sql is not None else None,
        sink=spec.sink,
        sink_path=(*path, "sink"),
    )


def _made(said: Said, spec: WindowSpec, path: Path, mistakes: Mistakes) -> str | None:
    """Return SQL of windows that a handler cannot say, because a row may be in several, or because
    others decide where they end."""
    size, advance, gap = spec.size_seconds, spec.advance_seconds, spec.session_gap_seconds
    if gap is not None:
        if size is not None or advance is not None:
            mistakes.add(
                "a window with session_gap_seconds has no other size",
                said.at(*path, "session_gap_seconds"),
                "remove size_seconds and advance_seconds, or session_gap_seconds",
            )
        return f"session(INTERVAL {gap} SECOND)"
    if size is None:
        mistakes.add(
            "'tables.sql.window.size_seconds' is required",
            said.at(*path),
            "write size_seconds: 3600, or session_gap_seconds: 1800",
        )
        return None
    if advance is None:
        return None
    if size % advance:
        mistakes.add(
            f"size_seconds ({size}) is no multiple of advance_seconds ({advance})",
            said.at(*path, "advance_seconds"),
            "a row then would count in now more and now fewer windows; choose another advance",
        )
        return None
    return f"hop(INTERVAL {size} SECOND, INTERVAL {advance} SECOND)"


def _of_manager(said: Said, table: TableSpec, spec: ManagerSpec, path: Path) -> Closing | None:
    """Return what SQL says that collects windows, if the other one deletes what it collects."""
    collected = said.sql(*path, "tumbling_window", "collect_closed_windows_sql")
    deleted = said.sql(*path, "tumbling_window", "delete_closed_windows_sql")
    collect, delete = parsed(collected), parsed(deleted)
    if not isinstance(collect, exp.Select) or not isinstance(delete, exp.Delete):
        return None
    condition = _condition(collect)
    if condition != _condition(delete) or not _is_of(delete.this, table):
        return None
    kept = collect.copy()
    kept.set("where", None)
    if not _is_of(kept.find(exp.Table), table) or len(list(kept.find_all(exp.Table))) > 1:
        return None
    closing = Closing(
        at=said.at(*path),
        time_column="",
        after=0,
        emit=SqlText(text=kept.sql(dialect="duckdb"), at=collected.at),
        reads=table.name,
        sink=spec.sink,
        sink_path=(*path, "sink"),
    )
    return _when(closing, condition, table)


def _when(closing: Closing, condition: str, table: TableSpec) -> Closing | None:
    """Return a closing with what a condition says of it."""
    if found := _BY_CLOCK.fullmatch(condition):
        column, number, unit = found.groups()
        return replace(closing, time_column=column, after=_seconds(number, unit), counted="start")
    found = _BY_ROWS.fullmatch(condition)
    if found is None or found[2].lower() != table.name.lower():
        return None
    column, _, number, unit, idle, idle_unit = found.groups()
    return replace(
        closing,
        time_column=column,
        after=_seconds(number, unit),
        counted="newest",
        idle=_seconds(idle, idle_unit) if idle else None,
    )


def _condition(tree: exp.Expr) -> str:
    where = tree.args.get("where")
    return where.this.sql(dialect="duckdb") if isinstance(where, exp.Where) else ""


def _is_of(node: exp.Expr | None, table: TableSpec) -> bool:
    return isinstance(node, exp.Table) and node.name.lower() == table.name.lower()


def _seconds(number: str, unit: str) -> int:
    return int(number) * _UNITS[unit.upper()]


def size_of(bucket: exp.Expr) -> int | None:
    """Return the seconds of the windows that an expression makes; None: they are not known."""
    match bucket:
        case exp.DateBin(this=exp.Interval() as interval):
            found = re.fullmatch(_SPAN, interval.sql(dialect="duckdb"), re.IGNORECASE)
            return _seconds(found[1], found[2]) if found is not None else None
        case exp.TimestampTrunc() | exp.DateTrunc():
            return _UNITS.get(bucket.text("unit").upper())
        case _:
            return None
