"""Tables with windows, which handlers fill: groups that leave when they are closed."""

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import TokenType  # pyright: ignore[reportPrivateImportUsage]

from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.spec import Path
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, SqlText, entry
from kaflow_engine.model.sqlflow.lowering.statements import parsed, tokens
from kaflow_engine.model.sqlflow.specs import TableSpec, WindowSpec

CLOSED = "closed"
"""What `emit_sql` calls the rows of windows that have closed."""
_STARTS = (TokenType.SELECT, TokenType.WITH)
"""Words that a query begins with."""
_BUCKETS = (exp.TimestampTrunc, exp.DateTrunc, exp.DateBin, exp.Anonymous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A table of windows, and the SELECT that fills it."""

    table: TableSpec
    spec: WindowSpec
    path: Path
    """Where the table stands."""
    select: SqlText
    """Whose windows are over the event time of the engine."""
    event_time: str | None
    """The column that it takes the time of messages from."""


def managed_tables(said: Said, mistakes: Mistakes) -> dict[str, tuple[TableSpec, Path]]:
    """Return the tables with windows and where they stand, by their names in lower case."""
    found: dict[str, tuple[TableSpec, Path]] = {}
    for number, table in enumerate(said.spec.tables.sql):
        path: Path = ("tables", "sql", number)
        if table.manager is not None:
            mistakes.add(
                "windows that are collected and deleted by SQL of their own are not available",
                said.at(*path, "manager"),
                "write window: {time_column: …, size_seconds: …, emit_sql: …, sink: …}; the engine "
                "closes it by event time",
            )
        elif table.window is None:
            mistakes.add(
                f"the table '{table.name}' has no window, and tables that last are not available",
                said.at(*path),
                "give it window: {…}, or keep its rows in a database by a postgres sink",
            )
        elif table.name.lower() in found:
            mistakes.add(
                f"'{table.name}' is a second table of that name",
                said.at(*path),
                "give it another name",
            )
        else:
            found[table.name.lower()] = table, path
    return found


def filled_table(statement: SqlText) -> str | None:
    """Return the table that a statement fills by a SELECT; None: it does something else."""
    tree = parsed(statement)
    if not isinstance(tree, exp.Insert) or not isinstance(tree.expression, exp.Select):
        return None
    target = tree.find(exp.Table)
    return target.name if target is not None else None


def lower_window(
    table: TableSpec, path: Path, statement: SqlText, mistakes: Mistakes
) -> Window | None:
    """Return the window of a table, and what fills it.

    Args:
        table: The one with a window.
        path: Where it stands.
        statement: What fills it.
        mistakes: What is wrong is added.
    """
    tree = parsed(statement)
    assert table.window is not None
    assert isinstance(tree, exp.Insert)
    column = table.window.time_column
    bucket = next((e for e in tree.expression.selects if e.alias_or_name == column), None)
    if not isinstance(bucket, exp.Alias):
        mistakes.add(
            f"the handler does not select '{column}'",
            statement.at,
            f"write date_trunc('hour', CAST(timestamp AS TIMESTAMPTZ)) AS {column}",
        )
        return None
    return _window(table, path, statement, bucket, mistakes)


def _window(
    table: TableSpec, path: Path, handler: SqlText, bucket: exp.Alias, mistakes: Mistakes
) -> Window | None:
    assert table.window is not None
    start = next(t.start for t in tokens(handler) if t.token_type in _STARTS)
    columns = list(bucket.this.find_all(exp.Column))
    if not isinstance(bucket.this, _BUCKETS) or len(columns) != 1:
        mistakes.add(
            f"'{bucket.alias}' is no window of one column of the message",
            handler.line(columns[0].this.meta.get("line", 1) if columns else 1),
            f"write date_trunc('hour', CAST(timestamp AS TIMESTAMPTZ)) AS {bucket.alias}",
        )
        return None
    time, text = columns[0], handler.text
    begin, stop = _cast_around(time, text)
    edited = f"{text[:begin]}_time{text[stop:]}"
    lines = text.count("\n", 0, start)
    return Window(
        table=table,
        spec=table.window,
        path=path,
        select=SqlText(text=edited[start:], at=handler.line(lines + 1)),
        event_time=time.name if len(time.parts) == 1 else None,
    )


def _cast_around(time: exp.Column, text: str) -> tuple[int, int]:
    """Return where a column begins and ends in a text, with the cast that stands around it."""
    begin, stop = int(time.parts[0].meta["start"]), int(time.this.meta["end"]) + 1
    called = re.search(r"(?:try_)?cast\(\s*$", text[:begin], re.IGNORECASE)
    if called is not None and isinstance(time.parent, exp.Cast | exp.TryCast):
        return called.start(), text.index(")", stop) + 1
    written = re.match(r"\s*::\s*\w+", text[stop:])
    return begin, stop + written.end() if written is not None else stop


def window_settings(said: Said, window: Window, mistakes: Mistakes) -> tuple[Entry, ...]:
    """Return what a relation says of its windows."""
    path = (*window.path, "window")
    if window.spec.late_rows == "reemit":
        mistakes.add(
            "late rows cannot be emitted again",
            said.at(*path, "late_rows"),
            "write late_rows: drop or dead_letter, and let grace_seconds cover what comes late",
        )
    at = said.at(*path)
    late = "dead_letter" if window.spec.late_rows == "dead_letter" else "drop"
    grace = {"grace": f"{window.spec.grace_seconds}s", "on_late": late}
    return entry("emission", {"type": "final"}, at), entry("aggregation", grace, at)


def emitted(said: Said, window: Window, name: str, mistakes: Mistakes) -> SqlText:
    """Return the query of what leaves when windows have closed.

    Args:
        said: The file.
        window: Its window.
        name: What the relation of its groups is called.
        mistakes: What is wrong is added.
    """
    if window.spec.emit_sql is None:
        return SqlText(text=f'SELECT * FROM "{name}"', at=said.at(*window.path, "window"))
    sql = said.sql(*window.path, "window", "emit_sql")
    tree = parsed(sql)
    tables = list(tree.find_all(exp.Table)) if tree is not None else []
    others = [table.name for table in tables if table.name.lower() != CLOSED]
    if tree is not None and (others or not tables):
        mistakes.add(
            f"emit_sql reads '{others[0]}'" if others else "emit_sql reads nothing",
            sql.at,
            f"it reads one table: FROM {CLOSED}",
        )
    text = sql.text
    for table in sorted(tables, key=lambda each: each.this.meta["start"], reverse=True):
        start, stop = table.this.meta["start"], table.this.meta["end"] + 1
        alias = "" if table.alias else f" AS {CLOSED}"
        text = f'{text[:start]}"{name}"{alias}{text[stop:]}'
    return SqlText(text=text, at=sql.at)
