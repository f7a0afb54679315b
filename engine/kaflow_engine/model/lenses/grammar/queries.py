"""A SELECT with its clauses."""

from typing import TypedDict, Unpack

from sqlglot.tokenizer_core import TokenType

from kaflow_engine.model.lenses.grammar.cursor import Cursor
from kaflow_engine.model.lenses.grammar.expressions import expression, field
from kaflow_engine.model.lenses.grammar.syntax import (
    Duration,
    Everything,
    Expression,
    Field,
    Join,
    Kind,
    Lateral,
    Name,
    Projection,
    Query,
    Source,
    Window,
)

_CLAUSES = ("WHERE", "EVENTTIME BY", "WINDOW BY", "GRACE BY", "GROUP BY", "HAVING")
_SIDES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("JOIN",), "INNER"),
    (("INNER", "JOIN"), "INNER"),
    (("LEFT", "JOIN"), "LEFT"),
    (("LEFT", "OUTER", "JOIN"), "LEFT"),
    (("RIGHT", "JOIN"), "RIGHT"),
    (("RIGHT", "OUTER", "JOIN"), "RIGHT"),
    (("OUTER", "JOIN"), "FULL"),
    (("FULL", "JOIN"), "FULL"),
    (("FULL", "OUTER", "JOIN"), "FULL"),
)


_ELSEWHERE = {
    "LIMIT": "remove it: `kaflow run --max-records` bounds a run",
    "ORDER": "remove it: records of one key keep their order",
    "UNION": "write INSERT INTO a topic of its own for each SELECT",
    "EMIT": "remove it: changes leave as they arise",
    "PARTITION": "write AS _key behind what the key should be",
}
"""Clauses of other SQL, and what to do instead."""


_OLD_WINDOWS = ("TUMBLE", "HOP", "SESSION", "SLIDING")


class _Clauses(TypedDict, total=False):
    where: Expression
    event_time: Field
    window: Window
    grace: Duration
    groups: tuple[Expression, ...]
    having: Expression


def query(cursor: Cursor) -> Query:
    """Take a SELECT."""
    offset = cursor.offset
    cursor.expect("SELECT")
    kind = _kind(cursor)
    projections = [_projection(cursor)]
    while cursor.accept_kind(TokenType.COMMA):
        projections.append(_projection(cursor))
    cursor.expect("FROM", hint="fields of a SELECT have commas between them")
    if cursor.is_kind(TokenType.L_PAREN):
        cursor.refuse(
            "a SELECT cannot stand after FROM",
            cursor.offset,
            "name it: WITH x AS (SELECT …); then FROM x",
        )
    source = _source(cursor)
    joins = list[Join]()
    laterals = list[Lateral]()
    while (join := _join(cursor)) is not None:
        joins.append(join)
    while cursor.is_word("LATERAL"):
        laterals.append(_lateral(cursor))
    return _with_clauses(
        offset, kind, tuple(projections), source, joins, laterals, **_clauses(cursor)
    )


def _with_clauses(
    offset: int,
    kind: Kind,
    projections: tuple[Projection, ...],
    source: Source,
    joins: list[Join],
    laterals: list[Lateral],
    **clauses: Unpack[_Clauses],
) -> Query:
    return Query(
        offset=offset,
        kind=kind,
        projections=projections,
        source=source,
        joins=tuple(joins),
        laterals=tuple(laterals),
        **clauses,
    )


def _kind(cursor: Cursor) -> Kind:
    if cursor.accept("STREAM"):
        return "STREAM"
    if cursor.accept("TABLE"):
        return "TABLE"
    cursor.fail(
        "STREAM or TABLE",
        hint="SELECT STREAM takes each record as an event, SELECT TABLE as the last value of its "
        "key",
    )


def _projection(cursor: Cursor) -> Projection:
    offset = cursor.offset
    value = _everything(cursor) or expression(cursor)
    written = " ".join(cursor.source.text[offset : cursor.end].split())
    target: tuple[Name, ...] = ()
    if cursor.is_word("AS"):
        if isinstance(value, Everything):
            cursor.refuse("'*' has no name", cursor.offset, "name the fields one by one")
        cursor.take()
        target = field(cursor).parts
    return Projection(offset=offset, value=value, target=target, written=written)


def _everything(cursor: Cursor) -> Everything | None:
    """Take `*`, with names before it or without."""
    ahead = 0
    while not cursor.is_kind(TokenType.STAR, ahead):
        named = cursor.is_kind(TokenType.VAR, ahead) or cursor.is_kind(TokenType.IDENTIFIER, ahead)
        if not named or not cursor.is_kind(TokenType.DOT, ahead + 1):
            return None
        ahead += 2
    offset = cursor.offset
    names: list[Name] = []
    for _ in range(ahead // 2):
        names.append(cursor.name())
        cursor.take()
    cursor.take()
    return Everything(offset=offset, of=tuple(names))


def _source(cursor: Cursor) -> Source:
    name = cursor.topic("a topic")
    alias = None
    if cursor.accept("AS") or (cursor.is_name() and not any(map(cursor.is_word, _ELSEWHERE))):
        alias = cursor.name("another name")
    return Source(offset=name.offset, name=name, alias=alias)


def _join(cursor: Cursor) -> Join | None:
    offset = cursor.offset
    for words, side in _SIDES:
        if cursor.accept(*words):
            source = _source(cursor)
            condition = expression(cursor) if cursor.accept("ON") else None
            within = cursor.duration() if cursor.accept("WITHIN") else None
            return Join(
                offset=offset,
                side=side,  # pyright: ignore[reportArgumentType] - one of the table above
                source=source,
                condition=condition,
                within=within,
            )
    return None


def _lateral(cursor: Cursor) -> Lateral:
    offset = cursor.offset
    cursor.expect("LATERAL")
    value = expression(cursor)
    cursor.expect("AS", hint="write LATERAL list AS element")
    return Lateral(offset=offset, value=value, name=cursor.name())


def _clauses(cursor: Cursor) -> _Clauses:
    found: _Clauses = {}
    seen: set[str] = set()
    while True:
        clause = next((each for each in _CLAUSES if cursor.is_word(*each.split())), None)
        if clause is None:
            _refuse_others(cursor)
            return found
        if clause in seen:
            cursor.refuse(f"{clause} stands here twice", cursor.offset, "remove one of them")
        seen.add(clause)
        cursor.accept(*clause.split())
        match clause:
            case "WHERE":
                found["where"] = expression(cursor)
            case "EVENTTIME BY":
                found["event_time"] = field(cursor)
            case "WINDOW BY":
                _refuse_second_window(cursor, found)
                found["window"] = _window(cursor)
            case "GRACE BY":
                found["grace"] = cursor.duration()
            case "GROUP BY":
                _groups(cursor, found)
            case _:
                found["having"] = expression(cursor)


def _refuse_others(cursor: Cursor) -> None:
    for word, way_out in _ELSEWHERE.items():
        if cursor.is_word(word):
            cursor.refuse(f"{word} cannot stand in a processor", cursor.offset, way_out)


def _groups(cursor: Cursor, found: _Clauses) -> None:
    """Take the list of GROUP BY, among which older processors have their window."""
    offset = cursor.offset
    groups: list[Expression] = []
    while True:
        if _is_old_window(cursor):
            _refuse_second_window(cursor, found)
            found["window"] = _old_window(cursor)
        else:
            groups.append(expression(cursor))
        if not cursor.accept_kind(TokenType.COMMA):
            break
    key = Field(offset=offset, parts=(Name(offset=offset, text="_key"),))
    found["groups"] = tuple(groups) or (key,)


def _refuse_second_window(cursor: Cursor, found: _Clauses) -> None:
    if "window" in found:
        cursor.refuse("there is another window", cursor.offset, "remove one of them")


def _is_old_window(cursor: Cursor) -> bool:
    return any(map(cursor.is_word, _OLD_WINDOWS)) and cursor.is_kind(TokenType.L_PAREN, 1)


def _old_window(cursor: Cursor) -> Window:
    """Take `tumble(1,m)`, `hop(5,m,1,m)` or `session(10,m)`."""
    offset, kind = cursor.offset, cursor.take().text.upper()
    cursor.take()
    size = cursor.duration(comma=True)
    advance = None
    if kind == "HOP":
        cursor.expect_kind(TokenType.COMMA, "','", hint="write hop(5,m,1,m): size and advance")
        advance = cursor.duration(comma=True)
    cursor.expect_kind(TokenType.R_PAREN, "')'")
    match kind:
        case "TUMBLE" | "HOP" | "SESSION":
            return Window(offset=offset, kind=kind, size=size, advance=advance)
        case _:
            cursor.refuse(
                "SLIDING windows are not available",
                offset,
                "write WINDOW BY HOP 5m,1m, or JOIN … WITHIN 5m for records that are near each "
                "other",
            )


def _window(cursor: Cursor) -> Window:
    offset = cursor.offset
    if cursor.accept("TUMBLE"):
        return Window(offset=offset, kind="TUMBLE", size=cursor.duration(), advance=None)
    if cursor.accept("SESSION"):
        return Window(offset=offset, kind="SESSION", size=cursor.duration(), advance=None)
    if cursor.accept("HOP"):
        size = cursor.duration()
        cursor.expect_kind(
            TokenType.COMMA, "','", hint="write WINDOW BY HOP 5m,1m: size and advance"
        )
        return Window(offset=offset, kind="HOP", size=size, advance=cursor.duration())
    cursor.fail("TUMBLE, HOP or SESSION", hint="write WINDOW BY TUMBLE 5m")
