"""Tables with windows, which handlers fill: groups that leave when they are closed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokens import TokenType  # pyright: ignore[reportPrivateImportUsage]

from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.spec import Path
from kaflow_engine.model.sqlflow.lowering.handler_sql import TIME
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, SqlText, entry
from kaflow_engine.model.sqlflow.lowering.statements import parsed, tokens
from kaflow_engine.model.sqlflow.lowering.windows.closing import Closing, closing_of, size_of
from kaflow_engine.model.sqlflow.specs import TableSpec

_STARTS = (TokenType.SELECT, TokenType.WITH)
"""Words that a query begins with."""
_MERGED: dict[type, str] = {
    exp.Count: r"{own} \+ {new}",
    exp.Sum: r"{own} \+ {new}",
    exp.Max: r"greatest\({own}, {new}\)",
    exp.Min: r"least\({own}, {new}\)",
}
"""Aggregate → what ON CONFLICT may do with it, so that it is that of all rows."""
_BUCKETS = (exp.TimestampTrunc, exp.DateTrunc, exp.DateBin, exp.Anonymous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """A table whose windows are closed by the engine."""

    table: TableSpec
    path: Path
    """Where it stands."""
    closing: Closing


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The windows of a table, and the SELECT that fills them."""

    managed: Managed
    select: SqlText
    """Whose windows are over the event time of the engine."""
    event_time: str | None
    """The column that it takes the time of messages from; None: that lies inside another one."""
    grace: int
    """Seconds from the end of a window to its close."""

    @property
    def name(self) -> str:
        """What the table is called."""
        return self.managed.table.name


def managed_tables(said: Said, mistakes: Mistakes) -> dict[str, Managed]:
    """Return the tables with windows, by their names in lower case."""
    found: dict[str, Managed] = {}
    for number, table in enumerate(said.spec.tables.sql):
        path: Path = ("tables", "sql", number)
        closing = closing_of(said, table, path, mistakes)
        if table.name.lower() in found:
            mistakes.add(
                f"'{table.name}' is a second table of that name",
                said.at(*path),
                "give it another name",
            )
        elif closing is not None:
            found[table.name.lower()] = Managed(table=table, path=path, closing=closing)
    return found


def filled_table(statement: SqlText) -> str | None:
    """Return the table that a statement fills by a SELECT; None: it does something else."""
    tree = parsed(statement)
    if not isinstance(tree, exp.Insert) or not isinstance(tree.expression, exp.Select):
        return None
    target = tree.find(exp.Table)
    return target.name if target is not None else None


def lower_window(managed: Managed, statement: SqlText, mistakes: Mistakes) -> Window | None:
    """Return the windows of a table, and what fills them.

    Args:
        managed: The table.
        statement: What fills it.
        mistakes: What is wrong is added.
    """
    tree = parsed(statement)
    assert isinstance(tree, exp.Insert)
    column = managed.closing.time_column
    bucket = next((e for e in tree.expression.selects if e.alias_or_name == column), None)
    if not isinstance(bucket, exp.Alias):
        mistakes.add(
            f"the handler does not select '{column}'",
            statement.at,
            f"write date_trunc('hour', CAST(timestamp AS TIMESTAMPTZ)) AS {column}",
        )
        return None
    _check_conflict(tree, statement, mistakes)
    return _window(managed, statement, bucket, mistakes)


def _window(
    managed: Managed, statement: SqlText, bucket: exp.Alias, mistakes: Mistakes
) -> Window | None:
    columns = list(bucket.this.find_all(exp.Column))
    made = managed.closing.made
    if made is not None:
        if _is_time(bucket.this):
            return _windows(managed, statement, columns[0], made, 0)
        mistakes.add(
            f"'{bucket.alias}' is no time of the message, of which windows could be made",
            statement.line(columns[0].this.meta.get("line", 1) if columns else 1),
            f"write CAST(timestamp AS TIMESTAMPTZ) AS {bucket.alias}; in what leaves it is the "
            "start of the window",
        )
        return None
    if not isinstance(bucket.this, _BUCKETS) or len(columns) != 1:
        mistakes.add(
            f"'{bucket.alias}' is no window of one column of the message",
            statement.line(columns[0].this.meta.get("line", 1) if columns else 1),
            f"write date_trunc('hour', CAST(timestamp AS TIMESTAMPTZ)) AS {bucket.alias}",
        )
        return None
    size = size_of(bucket.this)
    if size is None and managed.closing.counted != "end":
        mistakes.add(
            f"the windows of '{managed.table.name}' are of no size in seconds, so that it is not "
            "known how long after their end they are collected",
            statement.at,
            "take date_trunc('minute', …), 'hour' or 'day', or time_bucket(INTERVAL '5' MINUTE, …)",
        )
        return None
    said = managed.closing.size
    if None not in (size, said) and size != said:
        mistakes.add(
            f"'{bucket.alias}' makes windows of {size} seconds, and size_seconds is {said}",
            statement.line(columns[0].this.meta.get("line", 1)),
            "let both say the same",
        )
    return _windows(managed, statement, columns[0], TIME, size or 0)


def _is_time(tree: exp.Expr) -> bool:
    """Tell whether an expression is a column, or one that is cast."""
    return isinstance(tree.this if isinstance(tree, exp.Cast | exp.TryCast) else tree, exp.Column)


def _windows(
    managed: Managed, statement: SqlText, time: exp.Column, instead: str, size: int
) -> Window:
    """Return windows over the event time of the engine, which stands for a column."""
    start, end = _select_in(statement)
    begin, stop = _cast_around(time, statement.text)
    text = statement.text[start:begin] + instead + statement.text[stop:end]
    lines = statement.text.count("\n", 0, start)
    return Window(
        managed=managed,
        select=SqlText(text=text.rstrip(), at=statement.line(lines + 1)),
        event_time=None if _is_inside(time) else time.name,
        grace=managed.closing.grace(size),
    )


def _is_inside(time: exp.Column) -> bool:
    """Tell whether a column is a field of another one, and not one of a table."""
    select = time.find_ancestor(exp.Select)
    tables = select.find_all(exp.Table) if select is not None else ()
    known = {table.alias_or_name.lower() for table in tables}
    return len(time.parts) > 1 and (len(time.parts) > 2 or time.table.lower() not in known)


def _select_in(statement: SqlText) -> tuple[int, int]:
    """Return where the SELECT of an INSERT begins and ends: before ON CONFLICT."""
    words = tokens(statement)
    start = next(word.start for word in words if word.token_type in _STARTS)
    ends = (
        word.start
        for word, after in pairwise(words)
        if word.token_type is TokenType.ON and after.text.upper() == "CONFLICT"
    )
    return start, next(ends, len(statement.text))


def _check_conflict(tree: exp.Insert, statement: SqlText, mistakes: Mistakes) -> None:
    """Refuse an ON CONFLICT that makes something else of rows than their group is."""
    conflict = tree.args.get("conflict")
    if not isinstance(conflict, exp.OnConflict):
        return
    columns: Sequence[exp.Expr] = tree.expression.selects
    selected = {each.alias_or_name.lower(): each.unalias() for each in columns}
    for update in conflict.expressions:
        name = update.this.name.lower()
        made = _MERGED.get(type(selected[name])) if name in selected else None
        own, new = (rf"(?:\w+\.)?{re.escape(name)}", rf"excluded\.{re.escape(name)}")
        forms = made and made.format(own=own, new=new)
        if forms and re.fullmatch(forms, update.expression.sql(dialect="duckdb").lower()):
            continue
        mistakes.add(
            f"ON CONFLICT makes something else of '{name}' than all rows of its group would",
            statement.at,
            "write n = n + EXCLUDED.n for count and sum, greatest(n, EXCLUDED.n) for max and "
            "least(n, EXCLUDED.n) for min; or leave it out: a group is whole when it leaves",
        )
        return
    if not conflict.expressions:
        mistakes.add(
            "ON CONFLICT DO NOTHING would leave rows out of their group",
            statement.at,
            "leave it out: a group is whole when it leaves",
        )


def _cast_around(time: exp.Column, text: str) -> tuple[int, int]:
    """Return where a column begins and ends in a text, with the cast that stands around it."""
    begin, stop = int(time.parts[0].meta["start"]), int(time.this.meta["end"]) + 1
    called = re.search(r"(?:try_)?cast\(\s*$", text[:begin], re.IGNORECASE)
    if called is not None and isinstance(time.parent, exp.Cast | exp.TryCast):
        return called.start(), text.index(")", stop) + 1
    written = re.match(r"\s*::\s*\w+", text[stop:])
    return begin, stop + written.end() if written is not None else stop


def window_settings(window: Window) -> tuple[Entry, ...]:
    """Return what a relation says of its windows."""
    closing = window.managed.closing
    grace = {"grace": f"{window.grace}s", "on_late": closing.on_late}
    emission = entry("emission", {"type": "final"}, closing.at)
    return emission, entry("aggregation", grace, closing.at)


def emitted(window: Window, name: str, mistakes: Mistakes) -> SqlText:
    """Return the query of what leaves when windows have closed.

    Args:
        window: The windows.
        name: What the relation of their groups is called.
        mistakes: What is wrong is added.
    """
    closing = window.managed.closing
    sql, reads = closing.emit, closing.reads
    if sql is None:
        return SqlText(text=f'SELECT * FROM "{name}"', at=closing.at)
    tree = parsed(sql)
    tables = list(tree.find_all(exp.Table)) if tree is not None else []
    others = [table.name for table in tables if table.name.lower() != reads.lower()]
    if tree is not None and (others or not tables):
        mistakes.add(
            f"emit_sql reads '{others[0]}'" if others else "emit_sql reads nothing",
            sql.at,
            f"it reads one table: FROM {reads}",
        )
    text = sql.text
    for table in sorted(tables, key=lambda each: each.this.meta["start"], reverse=True):
        start, stop = table.this.meta["start"], table.this.meta["end"] + 1
        alias = "" if table.alias else f" AS {reads}"
        text = f'{text[:start]}"{name}"{alias}{text[stop:]}'
    return SqlText(text=text, at=sql.at)
