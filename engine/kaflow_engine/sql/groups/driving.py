"""Rows of groups and transforms that drive what is joined to them."""

from dataclasses import replace

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.scope import Scope
from kaflow_engine.sql.shape import JoinKind


def drive_by_rows(flat: Flat, scope: Scope) -> None:
    """Let the rows of the last group of a query be what drives the joins behind it.

    Args:
        flat: What is read so far; its groups become its first source.
        scope: Names its columns, which stay as they are.
    """
    last, below = flat.groups[-1], replace(flat)
    first, *others = scope.relations
    outputs = {
        f"{relation.alias}.{name}": tree
        for relation in others
        for name, tree in (relation.outputs or {}).items()
    }
    outputs = {**(first.outputs or {}), **outputs}
    query = replace(below, outputs=outputs, sets={}, discriminator=None, alike=None).shape()
    driving, topic = flat.sources[0]
    flat.called = {last.alias: first.alias}
    flat.sources = [(last.alias, topic)]
    flat.queries = {last.alias: replace(query, outputs=())}
    flat.readings = {last.alias: flat.readings[driving]} if driving in flat.readings else {}
    flat.changes, flat.tables, flat.dimensions, flat.filters = {}, {}, set(), {}
    flat.joins, flat.unnests, flat.groups, flat.where = [], [], [], [*last.where]
    first.base = last.alias
    flat.null_rows, flat.union_of, flat.rows_of, flat.once = False, None, below, set()


def check_driven(kind: JoinKind, alias: str, side: Flat, rows: Flat, at: Location | None) -> None:
    """Refuse what rows of groups and transforms cannot be joined to.

    Args:
        kind: Of the join.
        alias: What the author calls the joined side.
        side: What is joined.
        rows: Whose last groups drive.
        at: Where the join stands.

    Raises:
        SqlError: With the way out.
    """
    events = bool(side.once) or not (side.is_table or side.queries or side.dimensions)
    last = rows.groups[-1]
    if events and (last.run is not None or last.transform is not None):
        raise SqlError(
            f"'{alias}' is a topic of events, and what it is joined to are no records of a topic"
            if not side.once
            else f"'{alias}' has rows that leave once, and so has what it is joined to",
            at,
            (
                "join first, and group or transform the joined rows"
                if side.once
                else f"declare topics: {side.first}: table: true, whose rows are looked up; or "
                "join first, and group or transform the joined rows"
            ),
        )
    if kind not in ("LEFT", "INNER") and not (events and kind == "FULL"):
        raise SqlError(
            f"{kind} JOIN would keep rows of '{alias}' that nothing meets",
            at,
            "write LEFT JOIN: each row looks up what is there",
        )
