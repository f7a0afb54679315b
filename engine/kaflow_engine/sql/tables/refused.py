"""Refuses what tables cannot do, or streams that look them up, with the reason and the way out."""

from collections.abc import Callable

from sqlglot import exp

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.groups.driving import check_driven
from kaflow_engine.sql.shape import BATCH_TIME, JoinKind, QueryShape
from kaflow_engine.sql.streamable import is_unnest, line_of
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.joined import said_kind
from kaflow_engine.sql.tables.kinds import Kind, beside
from kaflow_engine.sql.types.bind import expressions

_ALL_TABLES = "declare topics: <topic>: table: true for each topic of the join"


def wrong_kinds(
    select: exp.Select, kind_of: Callable[[exp.Expr], Kind], at: Location | None
) -> list[SqlError]:
    """Return what is wrong with joins of events that keep other rows than the driving ones.

    Args:
        select: As it was written.
        kind_of: Tells the kind of what stands after FROM or JOIN.
        at: Where the SQL text begins.
    """
    clause = select.args.get("from_") or select.args.get("from")
    every: list[exp.Join] = select.args.get("joins") or []
    joins = [join for join in every if not is_unnest(join)]
    before: Kind = "events" if clause is None else kind_of(clause.this)
    found: list[SqlError] = []
    for number, join in enumerate(joins):
        before, joined = beside(before, kind_of(join.this))
        kind, place = said_kind(join), at_line(at, line_of(join))
        events = before != "table" and joined == "events"  # changes that are joined are a table
        if events and kind == "FULL" and number:
            way_out = f"put the FULL JOIN first, and what is looked up behind it; or {_ALL_TABLES}"
            text = "FULL JOIN of events behind another join cannot run here"
            found.append(SqlError(text, place, way_out))
        if events and kind == "RIGHT" and number:
            way_out = f"put the preserved topic first and use LEFT JOIN; or {_ALL_TABLES}"
            text = "RIGHT JOIN of events behind another join cannot run here"
            found.append(SqlError(text, place, way_out))
        before = "table" if before == "table" and joined != "events" else "events"
    return found


def check_kind(kind: JoinKind, alias: str, side: Flat, before: Flat, at: Location | None) -> None:
    """Refuse joins of events and tables that keep rows of tables.

    Args:
        kind: After events were put first, where that is the same.
        alias: What the author calls the joined side.
        side: What is joined.
        before: What it is joined to.
        at: Where the join stands.

    Raises:
        SqlError: With the way out.
    """
    if before.rows_of is not None:
        return check_driven(kind, alias, side, before.rows_of, at)
    first = before.called.get(before.sources[0][0], before.sources[0][0])
    match before.is_table, side.is_table or bool(side.queries.keys() - side.once):
        case (True, True):
            return
        case (True, False):
            raise _joined_events(kind, alias, first, at, is_topic=not side.groups)
        case (False, True) if kind in ("RIGHT", "FULL"):
            raise SqlError(
                f"{kind} JOIN would keep rows of table '{alias}' that no event of '{first}' meets",
                at,
                f"write LEFT JOIN: each event of '{first}' looks up its row; or {_ALL_TABLES}",
            )
        case _:
            return


def _joined_events(
    kind: JoinKind, alias: str, first: str, at: Location | None, *, is_topic: bool
) -> SqlError:
    if kind in ("LEFT", "FULL"):
        tables = f"; or declare topics: <topic>: table: true for '{alias}', too"
        return SqlError(
            f"{kind} JOIN would keep rows of table '{first}' that no event of '{alias}' meets",
            at,
            f"write FROM {alias} LEFT JOIN {first}: each event looks up its row"
            + (tables if is_topic else ""),
        )
    return SqlError(
        f"'{alias}' is joined to tables, and its events drive the join",
        at,
        f"put '{alias}' first: FROM {alias} JOIN …",
    )


def wrong_tables(shape: QueryShape, at: Location | None) -> list[SqlError]:
    """Return what cannot be asked of rows of tables: the time, which goes on without a change."""
    if not shape.is_table:
        return []
    return [
        SqlError(
            "now() over tables is not supported: their rows would have to change whenever time "
            "passes",
            at_line(at, part.line),
            "compare columns of the rows; topics.<topic>.retain deletes a row that nothing changes "
            "for so long",
        )
        for part in dict.fromkeys(expressions(shape))
        if identifier(BATCH_TIME) in part.sql
    ]


def refuse_window(flat: Flat, name: str, at: Location | None) -> None:
    """Refuse windows over rows that replace each other: they are never over.

    Args:
        flat: What is grouped.
        name: Of the function.
        at: Where it stands.

    Raises:
        SqlError: With the way out.
    """
    if flat.is_table:
        raise SqlError(
            f"{name}() over table '{flat.first}': rows of a table change at any time, so "
            "no window of it is ever over",
            at,
            "group by time_bucket(INTERVAL 5 MINUTE, t) or date_trunc('hour', t), which are "
            "expressions like others here; or read the topic as events, without table: true",
        )
